//! `gleaner channels delete`.

use std::io::{IsTerminal as _, stdin};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::tools::{Form, channels};
use crate::App;
use crate::output::{BAD, BOLD, Output, paint};

/// Delete a channel with its key and secrets. What arrived through it stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels delete 'US support'      asks first
  gleaner channels delete 'US support' --yes")]
pub(crate) struct Args {
    /// Name or id
    channel: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let channels = channels(app).await?;
    // A channel whose secrets cannot be decrypted can be deleted too, so only its name is looked up.
    if !args.yes && !agreed(out, &args.channel)? {
        out.line("Nothing was deleted.");
        return Ok(ExitCode::FAILURE);
    }
    channels.delete(&args.channel).await?;
    out.json(&json!({"deleted": args.channel}));
    out.line(format!("Deleted {}. What arrived through it stays.", paint(BOLD, &args.channel)));
    Ok(ExitCode::SUCCESS)
}

fn agreed(out: Output, channel: &str) -> Result<bool> {
    if !stdin().is_terminal() {
        bail!("this deletes channel {channel:?} with its key and secrets, and there is no terminal to ask: confirm with --yes");
    }
    out.note(format!(
        "This deletes {channel:?} with its {}, for good; requests of its sender are rejected from then on.",
        paint(BAD, "key and secrets")
    ));
    out.note("Type yes to go on:");
    let mut answer = String::new();
    stdin().read_line(&mut answer).context("read the answer")?;
    Ok(answer.trim() == "yes")
}
