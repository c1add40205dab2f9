//! `gleaner followups cancel`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::App;
use crate::output::{BAD, DIM, GOOD};
use crate::table::{Cell, Table};
use crate::words::count;

/// Cancel messages that are not sent yet.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner followups cancel 1f0c… --reason 'called them instead'
  gleaner followups cancel --prospect ada@example.com")]
pub(crate) struct Args {
    /// Their ids
    #[arg(required_unless_present = "prospect", conflicts_with = "prospect")]
    ids: Vec<Uuid>,
    /// Instead of ids: everything planned for this prospect
    #[arg(long)]
    prospect: Option<String>,
    /// Why; stored with the follow-up
    #[arg(long, default_value = "cancelled by hand")]
    reason: String,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    if let Some(prospect) = &args.prospect {
        let rows = client
            .query_typed("select public.cancel_pending_for_prospect($1, $2)", &[(prospect, Type::TEXT), (&args.reason, Type::TEXT)])
            .await?;
        let cancelled: i32 = rows.first().map_or(0, |row| row.get(0));
        app.out.json(&json!({"cancelled": cancelled}));
        app.out.line(format!("{} cancelled", count(cancelled, "follow-up")));
        return Ok(ExitCode::SUCCESS);
    }
    let sql = "select r.id, r.outcome, r.status from public.cancel_scheduled_actions($1, $2) as r";
    let rows = client.query_typed(sql, &[(&args.ids, Type::UUID_ARRAY), (&args.reason, Type::TEXT)]).await?;
    Ok(tell(app, "cancelled", &rows))
}

/// One line per action. The exit code is 1 when one was not found, or is being sent.
pub(super) fn tell(app: &App, done: &str, rows: &[Row]) -> ExitCode {
    let answers: Vec<(Uuid, String, Option<String>)> = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let all: Vec<Value> = answers.iter().map(|(id, outcome, status)| json!({"id": id, "outcome": outcome, "status": status})).collect();
    app.out.json(&all);
    let mut table = Table::new(&["ID", "OUTCOME", "STATUS"]);
    for (id, outcome, status) in &answers {
        let outcome = match outcome.as_str() {
            "done" => Cell::styled(done, GOOD),
            "already" => Cell::styled("nothing to change", DIM),
            "lost" => Cell::styled("is being sent", BAD),
            _ => Cell::styled("not found", BAD),
        };
        table.row(vec![id.to_string().into(), outcome, status.clone().unwrap_or_default().into()]);
    }
    app.out.line(table.text());
    let missed = answers.iter().any(|(_, outcome, _)| !matches!(outcome.as_str(), "done" | "already"));
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
