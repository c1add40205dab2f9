//! `gleaner followups reschedule` and `approve`.

use std::process::ExitCode;

use anyhow::Result;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::When;
use super::cancel::tell;
use crate::App;

/// Give planned messages another time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner followups reschedule 1f0c… --in 1d
  gleaner followups reschedule 1f0c… --at '2026-12-01 09:00 Europe/Berlin'")]
pub(crate) struct Args {
    /// Their ids
    #[arg(required = true)]
    ids: Vec<Uuid>,
    #[command(flatten)]
    when: When,
}

/// Approve messages that wait for it; they are sent when they are due.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner followups list --json | jq -r '.[] | select(.deferred_reason == \"waits for approval\").id' | xargs gleaner followups approve")]
pub(crate) struct Approve {
    /// Their ids
    #[arg(required = true)]
    ids: Vec<Uuid>,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let (when, value) = args.when.sql(2)?;
    let sql = format!("select r.id, r.outcome, r.status from gleaner.reschedule_followups($1, {when}) as r");
    let rows = client.query_typed(&sql, &[(&args.ids, Type::UUID_ARRAY), (&value, Type::TEXT)]).await?;
    Ok(tell(app, "rescheduled", &rows))
}

pub(super) async fn approve(app: &App, args: Approve) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let sql = "select r.id, r.outcome, r.status from public.approve_scheduled_actions($1) as r";
    let rows = client.query_typed(sql, &[(&args.ids, Type::UUID_ARRAY)]).await?;
    Ok(tell(app, "approved", &rows))
}
