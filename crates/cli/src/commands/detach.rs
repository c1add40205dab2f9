//! `gleaner detach`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::Desk;
use crate::output::{GOOD, paint};

/// Take a queue off its table and leave the table as it was.
///
/// What attach added goes; no row is changed otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner detach orders
  gleaner detach orders --force             even while agents hold rows")]
pub(crate) struct Args {
    /// Name of the queue
    name: String,
    /// Even while agents hold rows: these stay as they are, held by nobody
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let mut client = desk.place.client().await?;
    let done = gleaner::attach::detach(&mut client, &args.name, args.force).await?;
    desk.out.json(&json!({"queue": args.name, "done": done}));
    done.iter().for_each(|step| desk.out.line(format!("  {step}")));
    desk.out.line(format!("{} queue {}; its table is as it was", paint(GOOD, "detached"), args.name));
    Ok(ExitCode::SUCCESS)
}
