//! `gleaner channels add`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_intake::channels::{NewChannel, nest};
use zeroize::Zeroizing;

use super::settings::{self, Settings};
use super::show::cautions;
use super::tools::{Form, channels, safe_addresses, tell_url, with_key};
use crate::App;
use crate::output::{BOLD, DIM, paint};
use crate::words::shell_word;

/// Add a channel, and get the URL to give to its sender.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels add 'US support' --provider twilio --set auth_token=@token.txt --set account_sid=AC… --owner ada@example.com
  gleaner channels add Mail --provider postmark --set basic_auth.username=gleaner --set-env basic_auth.password=MAIL_PASSWORD
  pass show github/hook | gleaner channels add GitHub --provider generic --set scheme=hub-sha256 --set secret=-
  gleaner channels add Forms --provider generic --set scheme=none -o json | jq -r .webhook_url")]
pub(crate) struct Args {
    /// Its name
    name: String,
    /// The provider: a code of `gleaner channels providers`
    #[arg(short, long)]
    provider: String,
    #[command(flatten)]
    settings: Settings,
    /// Owner of what arrives, by e-mail address or id; without one it has no owner
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
    /// Create a contact for every unknown sender
    #[arg(long)]
    auto_create_contacts: bool,
    /// Keep a key that the sender has already, instead of a random one: @FILE, - or the key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let new = NewChannel {
        name: args.name,
        provider_code: args.provider,
        settings: nest(args.settings.read()?),
        owner: args.owner,
        auto_create_contacts: args.auto_create_contacts,
        ingestion_key: args.key.as_deref().map(settings::read).transpose()?.map(Zeroizing::new),
    };
    let channels = channels(app).await?;
    let opened = channels.add(new).await?;
    let at = safe_addresses(app, &channels, out).await?;
    out.json(&with_key(&channels, &opened, &at)?);
    out.line(format!("Added {}, which takes what {} sends.", paint(BOLD, &opened.channel.name), opened.channel.provider_code));
    tell_url(out, &opened, &at)?;
    cautions(out, &channels.summary(&opened).cautions);
    let name = shell_word(&opened.channel.name);
    out.note(paint(DIM, format!("`gleaner channels show {name} --reveal` shows it again, `gleaner channels test {name}` tries it.")));
    Ok(ExitCode::SUCCESS)
}
