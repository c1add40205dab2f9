//! `gleaner channels poll`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use gleaner_http::Caller;
use gleaner_intake::files::Files;
use gleaner_intake::mailboxes::Alone;
use gleaner_intake::mailboxes::Google;
use gleaner_intake::mailboxes::Report;

use super::tools::{Form, channels};
use crate::App;
use crate::output::{BAD, DIM, GOOD, WARN, paint};
use crate::words::count;

/// Poll a mailbox now, and show what arrived.
///
/// A running server may do it; without one it is done here. The exit code is 1 when the mailbox could not be read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels poll Mail
  gleaner channels poll Mail -o json | jq .stored")]
pub(crate) struct Args {
    /// Name or id
    channel: String,
    /// Seconds to wait for the result
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    wait: u64,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let channels = channels(app).await?;
    let channel = channels.get(&args.channel).await?.channel;
    if channel.provider_code != "gmail" {
        bail!("{} is a channel of {}, which sends by itself; only Gmail channels are polled", channel.name, channel.provider_code);
    }
    if !channel.is_active {
        bail!("{} is paused\n  Run `gleaner channels resume` first", channel.name);
    }
    let pool = gleaner::pool(&app.target.url().await?, 8)?;
    let files = Files::from_env(app.target.home()?.path())?;
    let mut alone = Alone::new(Google::from_env().map_err(anyhow::Error::msg)?, pool, channels, files)?;
    let asked = alone.gmail.ask(&Caller::Ourselves, Some(&channel.id.to_string())).await?;
    alone.read_mailboxes();
    let report = alone.gmail.wait_for(&asked, Duration::from_secs(args.wait)).await?.pop();
    alone.finish().await;
    let Some(report) = report else { bail!("{} is gone", channel.name) };
    out.json(&report);
    out.listing(text(&report));
    Ok(if report.outcome == "read" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(report: &Report) -> String {
    let error = report.error.as_deref().unwrap_or_default();
    match report.outcome {
        "read" => format!("{}  {} new", paint(GOOD, "read"), count(report.stored, "message")),
        "needs_reauth" => format!("{}  {error}", paint(BAD, "needs a new grant")),
        "waiting" => format!("{}  {}", paint(WARN, "not finished"), paint(DIM, "the poll continues where it was begun")),
        _ => format!("{}  {error}", paint(BAD, "failed")),
    }
}
