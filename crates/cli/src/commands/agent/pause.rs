//! `gleaner agent pause`.

use std::process::ExitCode;

use anyhow::Result;

use super::{Named, show};
use crate::App;

/// Pause an agent: it claims nothing new, and finishes what runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner agent pause
  gleaner agent pause laptop                the one of that name")]
pub(super) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let remote = args.named.find(app).await?;
    let view = remote.pause().await?;
    app.out.json(&view);
    app.out.line(format!("{}: {}. `gleaner agent resume` lets it go on.", remote.name(), show::painted_state(&view)));
    Ok(ExitCode::SUCCESS)
}
