//! `gleaner items list`.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use gleaner::view::{Filter, State, View};
use serde_json::Value;

use crate::App;
use crate::output::{DIM, of_state, paint};
use crate::table::{Cell, Table};
use crate::target::Named;
use crate::words::{brief, member, moment, span};

/// List items, by state, kind or owner.
///
/// Waiting items in the order they are due, others newest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner items list jobs
  gleaner items list jobs --state failed --kind mail
  gleaner items list activities --owner 7 --limit 5
  gleaner items list jobs --state dead --json | jq -r '.[].id' | xargs gleaner items requeue jobs")]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
    /// Only items in this state
    #[arg(short, long, default_value = "all", value_parser = PossibleValuesParser::new(["ready", "running", "scheduled", "failed", "dead", "done", "cancelled", "all"]))]
    state: String,
    /// Only items of this owner
    #[arg(long)]
    owner: Option<String>,
    /// Only items of this kind
    #[arg(short, long)]
    kind: Option<String>,
    /// The most to list
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
    limit: i64,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let view = View::of(&client, &args.named.queue).await?;
    let state: Option<State> = args.state.parse().ok();
    let filtered = state.is_some() || args.owner.is_some() || args.kind.is_some() || args.named.tenant.is_some();
    let filter = Filter { state, owner: args.owner, kind: args.kind, tenant: args.named.tenant, limit: args.limit, ..Filter::default() };
    let items = view.list(&client, &filter).await?;
    app.out.json(&items);
    if items.is_empty() {
        let queue = &args.named.queue;
        app.out.line(match (filtered, queue.as_str()) {
            (true, _) => format!("No such items in {queue}. `gleaner items list {queue}` lists them all."),
            (false, "jobs") => "The queue jobs is empty. Put something in: gleaner enqueue jobs --kind mail '{\"to\": \"ada\"}'".into(),
            (false, _) => format!(
                "The queue {queue} is empty. Insert rows into {}, or use `gleaner enqueue {queue} COLUMN=VALUE …`.",
                view.plan().table.sql()
            ),
        });
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["ID", "STATE", "KIND", "OWNER", ">TRIES", "DUE", "DETAIL"]);
    for item in &items {
        let state = member(item, "state");
        table.row(vec![
            member(item, "id").into(),
            Cell::styled(state.clone(), of_state(&state)),
            member(item, "kind").into(),
            member(item, "owner").into(),
            item["attempts"].as_i64().unwrap_or(0).to_string().into(),
            due(item).into(),
            Cell::styled(detail(item), DIM),
        ]);
    }
    app.out.listing(table.text());
    if items.len() as i64 == args.limit {
        app.out.note(paint(DIM, format!("The first {} are shown; --limit shows more.", args.limit)));
    }
    Ok(ExitCode::SUCCESS)
}

/// When something happens next. For a running item that is the end of its lease.
fn due(item: &Value) -> String {
    match (item["state"].as_str(), item["due_in"].as_f64()) {
        (Some("running"), Some(left)) => format!("lease {}", span(left)),
        (Some("ready" | "scheduled" | "failed" | "expired"), Some(due)) => moment(due),
        _ => String::new(),
    }
}

/// The most useful detail about an item in its state.
fn detail(item: &Value) -> String {
    match item["state"].as_str() {
        Some("running" | "expired") => {
            let progress = &item["progress"];
            let percent = progress["percent"].as_f64().map(|percent| format!("{percent}%")).unwrap_or_default();
            let shown = if progress.is_object() { format!("{percent} {}", member(progress, "stage")) } else { brief(progress) };
            format!("{} held by {}", shown.trim(), member(item, "agent")).trim().to_owned()
        }
        Some("failed" | "dead" | "cancelled") => error(item).unwrap_or_else(|| brief(&item["payload"])),
        Some("done") if !item["result"].is_null() => brief(&item["result"]),
        _ => brief(&item["payload"]),
    }
}

fn error(item: &Value) -> Option<String> {
    let error = &item["error"];
    let message = if error.is_object() { member(error, "message") } else { brief(error) };
    Some(message).filter(|text| !text.is_empty())
}
