//! `gleaner sql`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::App;

/// Print the SQL functions and triggers of a queue, exactly as they were run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner sql jobs | less
  gleaner sql orders > migrations/0042_orders_queue.sql")]
pub(crate) struct Args {
    /// Name of the queue
    name: String,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let sql = gleaner::attach::sql(&app.target.client().await?, &args.name).await?;
    if app.out.json {
        app.out.json(&json!({"queue": args.name, "sql": sql}));
    } else {
        app.out.data(sql.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}
