//! `gleaner queues`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner::view::{Stat, View};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::App;
use crate::output::{BAD, DIM, PLAIN, of_state, paint};
use crate::table::{Cell, Table};
use crate::words::span;

/// List the queues: how much waits, runs and failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner queues
  gleaner queues --json | jq '.[] | select(.dead > 0) | .queue'

Counts stop at ten thousand (10000+); finished items of a large table are estimated (~).")]
pub(crate) struct Args {}

/// The states that have a column. `waiting` stands for all of them when there are too many items to count each state.
const STATES: [&str; 7] = ["ready", "scheduled", "running", "expired", "failed", "dead", "finished"];

pub(crate) async fn run(app: &App, _: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let entries = gleaner::registry::survey(&client).await?;
    let mut broken = Vec::new();
    let mut table =
        Table::new(&["QUEUE", "TABLE", ">READY", ">SCHEDULED", ">RUNNING", ">EXPIRED", ">FAILED", ">DEAD", ">FINISHED", "OLDEST DUE"]);
    let mut all = Vec::new();
    for entry in &entries {
        let stats = match &entry.broken {
            Some(why) => Err(why.clone()),
            None => stats(&client, &entry.name).await.map_err(|error| error.to_string()),
        };
        let stats = match stats {
            Ok(stats) => stats,
            // A queue that cannot be counted must not hide the others.
            Err(why) => {
                let mut cells = vec![Cell::new(entry.name.clone()), Cell::styled(entry.table.clone(), DIM), Cell::styled("broken", BAD)];
                cells.extend((1..=STATES.len()).map(|_| Cell::new(String::new())));
                table.row(cells);
                all.push(json!({"queue": entry.name, "table": entry.table, "broken": why}));
                broken.push(format!("{} {}: {why}", paint(BAD, "broken"), entry.name));
                continue;
            }
        };
        let oldest = stats
            .iter()
            .filter(|s| matches!(s.state.as_str(), "ready" | "expired"))
            .filter_map(|s| s.oldest_age)
            .fold(None, |a: Option<f64>, b| Some(a.map_or(b, |a| a.max(b))));
        let mut cells = vec![Cell::new(entry.name.clone()), Cell::styled(entry.table.clone(), DIM)];
        cells.extend(STATES.iter().map(|state| cell(&stats, state)));
        cells.push(oldest.map(|age| format!("{} ago", span(age))).unwrap_or_default().into());
        table.row(cells);
        all.push(as_json(&entry.name, &entry.table, &stats, oldest));
    }
    app.out.json(&all);
    if entries.is_empty() {
        app.out.line("No table is attached here. `gleaner migrate` brings ours; `gleaner attach FILE` attaches yours.");
    } else {
        app.out.listing(table.text());
    }
    broken.iter().for_each(|line| app.out.line(line));
    Ok(ExitCode::SUCCESS)
}

async fn stats(client: &Client, queue: &str) -> gleaner::Result<Vec<Stat>> {
    View::of(client, queue).await?.stats(client).await
}

fn cell(stats: &[Stat], state: &str) -> Cell {
    let Some(stat) = stats.iter().find(|s| s.state == state) else {
        return Cell::styled(if state == "expired" { "" } else { "0" }, DIM);
    };
    // Counting stopped part-way, so the number of each state is incomplete.
    let partial = stats.iter().any(|s| s.state == "waiting") && !matches!(state, "dead" | "finished");
    let text = match (state, stat.capped || partial) {
        ("finished", true) => format!("~{}", stat.count),
        (_, true) => format!("{}+", stat.count.min(10_000)),
        (_, false) => stat.count.to_string(),
    };
    Cell::styled(
        text,
        if stat.count == 0 {
            DIM
        } else if state == "ready" {
            PLAIN
        } else {
            of_state(state)
        },
    )
}

fn as_json(name: &str, table: &str, stats: &[Stat], oldest: Option<f64>) -> Value {
    let mut one = json!({"queue": name, "table": table, "oldest_due_seconds": oldest, "broken": null, "capped": stats.iter().any(|s| s.state == "waiting")});
    for state in STATES {
        one[state] = json!(stats.iter().find(|s| s.state == state).map_or(0, |s| s.count));
    }
    one["finished_estimated"] = json!(stats.iter().any(|s| s.state == "finished" && s.capped));
    one
}
