//! `gleaner items show`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner::view::View;
use serde_json::Value;

use crate::App;
use crate::output::{BOLD, DIM, of_state, paint};
use crate::words::{brief, harmless, member, moment};

/// Show one item with all its columns and what was done to it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner items show jobs 42
  gleaner items show jobs 42 --json | jq .row.payload")]
pub(crate) struct Args {
    /// Name of the queue
    queue: String,
    /// The item's key
    id: String,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let view = View::of(&client, &args.queue).await?;
    let Some(item) = view.show(&client, &args.id).await? else {
        bail!("there is no item {} in {}\n  `gleaner items list {}` lists what there is", args.id, args.queue, args.queue);
    };
    app.out.json(&item);
    let state = member(&item, "state");
    let waits = matches!(state.as_str(), "ready" | "scheduled" | "failed");
    let when = item["due_in"].as_f64().filter(|_| waits).map(|due| format!(", due {}", moment(due))).unwrap_or_default();
    app.out.listing(format!(
        "{} is {}{when}",
        paint(BOLD, format!("{} {}", args.queue, member(&item, "id"))),
        paint(of_state(&state), &state)
    ));
    columns(app, &item["row"]);
    for (title, name) in [("What people did", "audit"), ("Results that came too late", "late_results")] {
        let entries = item[name].as_array().map(Vec::as_slice).unwrap_or_default();
        if !entries.is_empty() {
            app.out.listing(format!("\n{title}:"));
        }
        for entry in entries {
            let what = if name == "audit" { member(entry, "act") } else { brief(&entry["result"]) };
            app.out.line(format!("  {}  {what}  {}  {}", member(entry, "at"), member(entry, "caller"), brief(&entry["detail"])).trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Every column that has a value, with JSON on several lines.
fn columns(app: &App, row: &Value) {
    let Some(row) = row.as_object() else { return };
    let width = row.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in row.iter().filter(|(_, value)| !value.is_null()) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Object(_) | Value::Array(_) => serde_json::to_string_pretty(value).unwrap_or_default(),
            other => other.to_string(),
        };
        let text = harmless(&text).replace('\n', &format!("\n{}", " ".repeat(width + 4)));
        app.out.listing(format!("  {}  {text}", paint(DIM, format!("{name:width$}"))));
    }
}
