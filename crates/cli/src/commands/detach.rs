//! `gleaner detach`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::App;
use crate::output::{GOOD, paint};

/// Take a queue off its table and leave the table as it was.
///
/// Removes what attach added; rows are not changed otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner detach orders
  gleaner detach orders --force             even while agents hold rows")]
pub(crate) struct Args {
    /// Name of the queue
    name: String,
    /// Detach even while agents hold rows; these keep their status and lose their lease
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let mut client = app.target.client().await?;
    let done = gleaner::attach::detach(&mut client, &args.name, args.force).await?;
    app.out.json(&json!({"queue": args.name, "done": done}));
    done.iter().for_each(|step| app.out.line(format!("  {step}")));
    app.out.line(format!("{} queue {}; its table is as it was", paint(GOOD, "detached"), args.name));
    Ok(ExitCode::SUCCESS)
}
