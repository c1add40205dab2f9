//! `gleaner enqueue`.

mod file;
mod shape;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::ValueEnum;
use gleaner::queue::{Enqueued, OnDuplicate};
use serde_json::{Value, json};

use crate::App;
use crate::output::{DIM, GOOD, paint};
use crate::table::{Cell, Table};
use crate::target::{Named, notify_workers};
use crate::words::count;
use shape::Shape;

/// Enqueue items.
///
/// On the queue jobs each JSON value is the payload of a new job; on other queues it is an object whose keys are columns of the
/// table. `--as` chooses otherwise. Columns can also be given as COLUMN=VALUE.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner enqueue jobs --kind mail '{\"to\": \"ada@example.com\"}'
  gleaner enqueue jobs --kind report --in '5 minutes' --priority 1 '{\"month\": 7}'
  gleaner enqueue jobs --kind sync unique_key=account-17      not while one waits already
  gleaner enqueue runs recording_id=checkout 'config={\"suite\": \"all\"}'
  gleaner enqueue jobs --kind mail --file addresses.jsonl     one JSON value a line, all or nothing
  generate | gleaner enqueue jobs --file -")]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
    /// The items, or columns of one
    #[arg(value_name = "JSON | COLUMN=VALUE")]
    items: Vec<String>,
    /// Read items from this file, one JSON value a line; - reads standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "items")]
    file: Option<PathBuf>,
    /// What a JSON value is
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    meaning: Option<Meaning>,
    /// The kind of work
    #[arg(short, long)]
    kind: Option<String>,
    /// Time until it is due, such as '5 minutes'
    #[arg(long = "in", value_name = "TIME")]
    delay: Option<String>,
    /// The priority, as the queue knows it (on jobs: 2 is the most urgent, then 1, 0 and -1)
    #[arg(long, allow_hyphen_values = true)]
    priority: Option<String>,
    /// Update a waiting item that has the same unique key, instead of leaving it as it is
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Meaning {
    /// An object whose keys are columns
    Columns,
    /// The payload
    Payload,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let (mut client, acts) = app.target.acts(&args.named).await?;
    let shape = Shape::of(&client, acts.name(), &args).await?;
    let on_duplicate = if args.replace { OnDuplicate::Replace } else { OnDuplicate::Skip };
    if let Some(path) = &args.file {
        let counts = file::enqueue(app, &mut client, &acts, &shape, path, on_duplicate).await?;
        notify_workers(&client, acts.name()).await;
        app.out.json(&counts);
        app.out.line(summary(acts.name(), &counts));
        return Ok(ExitCode::SUCCESS);
    }
    let items = shape.items(&args.items)?;
    let enqueued = acts.enqueue(&client, &items, on_duplicate).await?;
    notify_workers(&client, acts.name()).await;
    let all: Vec<Value> = enqueued.iter().map(|e| json!({"id": e.key, "outcome": e.outcome})).collect();
    app.out.json(&all);
    tell(app, acts.name(), &enqueued);
    Ok(ExitCode::SUCCESS)
}

fn tell(app: &App, queue: &str, enqueued: &[Enqueued]) {
    let word = |outcome: &str| match outcome {
        "standing" => Cell::styled("one with this unique key waits already", DIM),
        other => Cell::styled(other, GOOD),
    };
    if let [one] = enqueued {
        let (outcome, key) = (one.outcome.as_str(), &one.key);
        return app.out.line(match outcome {
            "standing" => format!("{queue} {key} waits already with this unique key; --replace gives it the new values"),
            _ => format!("{} {queue} {key}", paint(GOOD, outcome)),
        });
    }
    let mut table = Table::new(&["ID", "OUTCOME"]);
    enqueued.iter().for_each(|one| table.row(vec![one.key.clone().into(), word(&one.outcome)]));
    app.out.line(table.text());
}

fn summary(queue: &str, counts: &BTreeMap<&'static str, u64>) -> String {
    let mut parts = vec![format!("{} in {queue}", count(counts["enqueued"], "item") + " enqueued")];
    if counts["standing"] > 0 {
        parts.push(format!("{} waited already with their unique key", counts["standing"]));
    }
    if counts["replaced"] > 0 {
        parts.push(format!("{} replaced", counts["replaced"]));
    }
    parts.join(", ")
}

/// The text before and after the first `=`, when the text before it can be a column name.
fn column(text: &str) -> Option<(&str, Value)> {
    let (name, value) = text.split_once('=')?;
    let mut letters = name.chars();
    let plain = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_') && letters.all(|c| c.is_alphanumeric() || c == '_');
    // Objects and lists are parsed as JSON. Anything else is text, which PostgreSQL converts to the column's type.
    let json = || value.starts_with(['{', '[']).then(|| serde_json::from_str(value).ok()).flatten();
    plain.then(|| (name, json().unwrap_or_else(|| value.into())))
}

fn parse(text: &str) -> Result<Value> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => bail!("{text:?} is neither JSON ({error}) nor COLUMN=VALUE"),
    }
}
