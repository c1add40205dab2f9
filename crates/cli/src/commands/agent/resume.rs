//! `gleaner agent resume`.

use std::process::ExitCode;

use anyhow::Result;

use super::{Named, show};
use crate::Desk;

/// Let a paused agent take work again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner agent resume
  gleaner agent resume laptop --concurrency 2")]
pub(super) struct Args {
    #[command(flatten)]
    named: Named,
    /// Items in work at once from now on
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    concurrency: Option<u16>,
}

pub(super) async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let remote = args.named.find(desk).await?;
    if let Some(most) = args.concurrency {
        remote.set_concurrency(most.into()).await?;
    }
    let view = remote.resume().await?;
    desk.out.json(&view);
    desk.out.line(format!("{}: {}", remote.name(), show::painted_state(&view)));
    Ok(ExitCode::SUCCESS)
}
