//! `gleaner channels test`.

use std::process::ExitCode;

use anyhow::{Result, bail};

use super::tools::{Form, addresses, channels};
use crate::App;
use crate::output::{BAD, DIM, GOOD, paint};

/// Send a correctly signed sample to the real webhook URL, and show the result.
///
/// It goes to the channel's public_url, else to PUBLIC_BASE_URL, else to this machine. When it is refused it is sent to other
/// addresses too, to distinguish a wrong public URL from a server that does not run. The sample becomes an activity marked as a test, which
/// is cancelled at once. The exit code is 1 when it did not pass.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels test 'US support'
  gleaner channels test 'US support' --url https://hooks.example.com     as if senders were given this address
  gleaner channels test 'US support' -o json | jq -r .activity_id")]
pub(crate) struct Args {
    /// Name or id
    channel: String,
    /// The base of the public address to test
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Where the server itself answers, to compare
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let channels = channels(app).await?;
    let own = channels.get(&args.channel).await?.channel.settings.text("public_url").map(ToOwned::to_owned);
    let mut addresses = addresses(app)?;
    addresses.public = args.url.or(own).or(addresses.public);
    addresses.local = args.server.or(addresses.local);
    if addresses.public.is_none() && addresses.local.is_none() {
        bail!(
            "no server runs in {}, so there is no address to send to\n  Start one with `gleaner serve`, or name one with --url",
            app.target.home()?.path().display()
        );
    }
    let tested = channels.test(&args.channel, &addresses).await?;
    out.json(&tested);
    let verdict = if tested.passed { paint(GOOD, "passed") } else { paint(BAD, "refused") };
    out.listing(format!("{verdict}  {}", tested.verdict));
    if let Some(id) = tested.activity_id {
        out.listing(format!("  activity  {id} {}", paint(DIM, "(marked as a test and cancelled)")));
    }
    for advice in &tested.advice {
        out.listing(format!("  {advice}"));
    }
    Ok(if tested.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
