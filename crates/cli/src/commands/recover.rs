//! `gleaner recover`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner::Acts;
use serde_json::json;

use crate::Desk;
use crate::place::ring;
use crate::words::count;

/// Show items whose holder is gone as waiting again.
///
/// Nothing depends on it: agents take such items by themselves.
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

pub(crate) async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let client = desk.place.client().await?;
    let acts = Acts::of(&client, &args.queue).await?;
    let mut recovered = 0;
    loop {
        let step = acts.recover(&client).await?;
        recovered += step;
        if step < STEP {
            break;
        }
    }
    ring(&client, acts.name()).await;
    desk.out.json(&json!({"queue": acts.name(), "recovered": recovered}));
    desk.out.line(format!("{}: {} whose lease had run out", acts.name(), count(recovered, "item")));
    Ok(ExitCode::SUCCESS)
}
