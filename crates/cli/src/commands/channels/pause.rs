//! `gleaner channels pause` and `resume`.

use std::process::ExitCode;

use anyhow::Result;

use super::tools::{Form, channels};
use crate::Desk;
use crate::output::{BOLD, paint};

/// Let nothing in for a while; the configuration stays.
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

/// Open a paused channel again.
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

pub(super) async fn pause(desk: &Desk, args: Pause) -> Result<ExitCode> {
    let out = args.form.of(desk);
    let channels = channels(desk).await?;
    let opened = channels.pause(&args.channel).await?;
    out.json(&channels.summary(&opened));
    out.line(format!("{} is paused: what its sender sends is turned away.", paint(BOLD, &opened.channel.name)));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn resume(desk: &Desk, args: Resume) -> Result<ExitCode> {
    let out = args.form.of(desk);
    let channels = channels(desk).await?;
    let opened = channels.resume(&args.channel).await?;
    out.json(&channels.summary(&opened));
    out.line(format!("{} is open again.", paint(BOLD, &opened.channel.name)));
    Ok(ExitCode::SUCCESS)
}
