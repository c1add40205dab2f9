//! `gleaner channels authorize`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use gleaner_intake::files::Files;
use gleaner_intake::mailboxes::Alone;
use gleaner_intake::mailboxes::Google;
use gleaner_intake::mailboxes::{Back, Loopback};
use gleaner_intake::mailboxes::{CALLBACK, Consent};
use serde_json::json;

use super::tools::{Form, addresses, channels};
use crate::App;
use crate::output::{BOLD, DIM, Output, paint};

/// Ask the owner of a mailbox for access to it.
///
/// Prints an address to open in a browser. The browser comes back to the server at PUBLIC_BASE_URL, and this command need not wait
/// for it; without a public address it comes back to this machine, and the command waits. Which of the two is entered at Google as
/// a redirect URI of the OAuth client: PUBLIC_BASE_URL/oauth/google/callback, or none for a client of the kind `Desktop app`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels authorize Mail
  gleaner channels authorize Mail --loopback --port 8765    on this machine, although there is a public address")]
pub(crate) struct Args {
    /// Name or id
    channel: String,
    /// Let the browser come back to this machine
    #[arg(long)]
    loopback: bool,
    /// Port it comes back to; 0 is any
    #[arg(long, default_value_t = 0, requires = "loopback")]
    port: u16,
    /// Seconds to wait for it
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    wait: u64,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let channels = channels(app).await?;
    let channel = channels.get(&args.channel).await?.channel;
    if channel.provider_code != "gmail" {
        bail!("{} is a channel of {}, which needs no authorization; only Gmail does", channel.name, channel.provider_code);
    }
    let base = channel.settings.text("public_url").map(str::to_owned).or(addresses(app)?.public).filter(|_| !args.loopback);
    let pool = gleaner::pool(&app.target.url().await?, 4)?;
    let files = Files::from_env(app.target.home()?.path())?;
    let alone = Alone::new(Google::from_env().map_err(anyhow::Error::msg)?, pool, channels, files)?;
    match base {
        Some(base) => {
            let redirect = format!("{}{CALLBACK}", base.trim_end_matches('/'));
            let consent = alone.gmail.ask_consent(&channel, &redirect)?;
            alone.gmail.expect(&consent).await?;
            tell(out, &consent, &redirect);
            out.note(paint(DIM, "It holds for 15 minutes; the server takes the browser back."));
        }
        None => {
            let loopback = Loopback::bind(args.port).await.with_context(|| format!("listen on port {} of this machine", args.port))?;
            let redirect = loopback.redirect_uri();
            let consent = alone.gmail.ask_consent(&channel, &redirect)?;
            tell(out, &consent, &redirect);
            out.note(paint(DIM, "Waiting for the browser to come back to this machine …"));
            match loopback.wait(&consent, Duration::from_secs(args.wait)).await {
                Back::Code(code) => drop(alone.gmail.grant(&consent, &code).await?),
                Back::Denied(why) => bail!("access was not granted ({why}); nothing was changed"),
                Back::Never => bail!("no authorization within {} seconds; nothing was changed", args.wait),
            }
            out.line(format!("{} may read the mailbox.", paint(BOLD, &channel.name)));
        }
    }
    alone.finish().await;
    Ok(ExitCode::SUCCESS)
}

fn tell(out: Output, consent: &Consent, redirect_uri: &str) {
    out.json(&json!({"url": consent.url, "redirect_uri": redirect_uri}));
    out.listing("Open this address in a browser, signed in as the owner of the mailbox:");
    out.listing(format!("  {}", consent.url));
}
