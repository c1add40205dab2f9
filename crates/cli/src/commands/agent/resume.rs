//! `gleaner agent resume`.

use std::process::ExitCode;

use anyhow::Result;

use super::{Named, show};
use crate::App;

/// Resume a paused agent.
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

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let remote = args.named.find(app).await?;
    if let Some(most) = args.concurrency {
        remote.set_concurrency(most.into()).await?;
    }
    let view = remote.resume().await?;
    app.out.json(&view);
    app.out.line(format!("{}: {}", remote.name(), show::painted_state(&view)));
    Ok(ExitCode::SUCCESS)
}
