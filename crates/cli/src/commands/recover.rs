//! `gleaner recover`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner::Acts;
use serde_json::json;

use crate::App;
use crate::target::notify_workers;
use crate::words::count;

/// Write the ready status on items whose lease has ended.
///
/// Only for people who read the table: agents claim such items anyway.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner recover jobs")]
pub(crate) struct Args {
    /// Name of the queue
    queue: String,
}

/// The most items that one call checks.
const STEP: i32 = 1000;

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let acts = Acts::of(&client, &args.queue).await?;
    let mut recovered = 0;
    loop {
        let step = acts.recover(&client).await?;
        recovered += step;
        if step < STEP {
            break;
        }
    }
    notify_workers(&client, acts.name()).await;
    app.out.json(&json!({"queue": acts.name(), "recovered": recovered}));
    app.out.line(format!("{}: {} whose lease had run out", acts.name(), count(recovered, "item")));
    Ok(ExitCode::SUCCESS)
}
