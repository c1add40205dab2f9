//! `gleaner channels pause` and `resume`.

use std::process::ExitCode;

use anyhow::Result;

use super::tools::{Form, channels};
use crate::App;
use crate::output::{BOLD, paint};

/// Pause a channel: reject its requests, keep its configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels pause 'US support'")]
pub(crate) struct Pause {
    /// Name or id
    channel: String,
    #[command(flatten)]
    form: Form,
}

/// Resume a paused channel.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels resume 'US support'")]
pub(crate) struct Resume {
    /// Name or id
    channel: String,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn pause(app: &App, args: Pause) -> Result<ExitCode> {
    let out = args.form.of(app);
    let channels = channels(app).await?;
    let opened = channels.pause(&args.channel).await?;
    out.json(&channels.summary(&opened));
    out.line(format!("{} is paused: requests of its sender are rejected.", paint(BOLD, &opened.channel.name)));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn resume(app: &App, args: Resume) -> Result<ExitCode> {
    let out = args.form.of(app);
    let channels = channels(app).await?;
    let opened = channels.resume(&args.channel).await?;
    out.json(&channels.summary(&opened));
    out.line(format!("{} is open again.", paint(BOLD, &opened.channel.name)));
    Ok(ExitCode::SUCCESS)
}
