//! `gleaner runs cancel`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::App;
use crate::output::{BAD, DIM, GOOD};
use crate::table::{Cell, Table};

/// Cancel runs. The browser of one that is running is ended within seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner runs cancel 1f0c…
  gleaner runs cancel 1f0c… 2a9d… --reason 'wrong data'")]
pub(crate) struct Args {
    /// Their ids
    #[arg(required = true)]
    ids: Vec<Uuid>,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let sql = "select r.id, r.outcome, r.status from gleaner.cancel_runs($1, $2) as r";
    let rows = client.query_typed(sql, &[(&args.ids, Type::UUID_ARRAY), (&args.reason, Type::TEXT)]).await?;
    let answers: Vec<(Uuid, String, Option<String>)> = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let all: Vec<Value> = answers.iter().map(|(id, outcome, status)| json!({"id": id, "outcome": outcome, "status": status})).collect();
    app.out.json(&all);
    let mut table = Table::new(&["ID", "OUTCOME", "STATUS"]);
    for (id, outcome, status) in &answers {
        let outcome = match outcome.as_str() {
            "done" => Cell::styled("cancelled", GOOD),
            "gone" => Cell::styled("no such run", BAD),
            _ => Cell::styled("had ended", DIM),
        };
        table.row(vec![id.to_string().into(), outcome, status.clone().unwrap_or_default().into()]);
    }
    app.out.line(table.text());
    let missed = answers.iter().any(|(_, outcome, _)| outcome == "gone");
    Ok(if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
