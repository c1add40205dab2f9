//! `gleaner agent pause`.

use std::process::ExitCode;

use anyhow::Result;

use super::{Named, show};
use crate::Desk;

/// Let an agent take nothing new; what runs goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner agent pause
  gleaner agent pause laptop                the one of that name")]
pub(super) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(super) async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let remote = args.named.find(desk).await?;
    let view = remote.pause().await?;
    desk.out.json(&view);
    desk.out.line(format!("{}: {}. `gleaner agent resume` lets it go on.", remote.name(), show::painted_state(&view)));
    Ok(ExitCode::SUCCESS)
}
