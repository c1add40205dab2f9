//! `gleaner channels rotate`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::settings;
use super::tools::{Form, channels, safe_addresses, tell_url, with_key};
use crate::App;
use crate::output::{BOLD, DIM, paint};
use crate::target::seconds;

/// Replace the ingestion key, or one of the provider's secrets.
///
/// A replaced secret stays valid beside the new one for a day, or for --keep-for: the sender is rarely changed at the same moment.
/// A replaced key ends at once unless --keep-for says otherwise, since keys are replaced when they leaked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels rotate 'US support'                                          a new key, the old one ends now
  gleaner channels rotate 'US support' --keep-for '1 hour'                      time to change the URL at the sender
  gleaner channels rotate 'US support' --secret auth_token --to @token.txt      both tokens are good for a day
  pass show hook | gleaner channels rotate GitHub --secret secret --to - --keep-for 0")]
pub(crate) struct Args {
    /// Name or id
    channel: String,
    /// The secret setting to replace, instead of the key
    #[arg(long, value_name = "KEY", requires = "to")]
    secret: Option<String>,
    /// The new secret: @FILE, - for standard input, or the secret itself
    #[arg(long, value_name = "SECRET", requires = "secret")]
    to: Option<String>,
    /// How long the old one stays valid: '2 hours', 0 for not at all
    #[arg(long, value_name = "TIME")]
    keep_for: Option<String>,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let keep_for = match &args.keep_for {
        Some(time) => Some(length(app, time).await?),
        None => None,
    };
    let channels = channels(app).await?;
    if let (Some(setting), Some(to)) = (&args.secret, &args.to) {
        let new = settings::read(to).with_context(|| format!("read {setting}"))?;
        let keep_for = keep_for.unwrap_or(Duration::from_secs(86_400));
        let opened = channels.rotate_secret(&args.channel, setting, new.into(), keep_for).await?;
        out.json(&channels.summary(&opened));
        out.line(format!("Replaced {setting} of {}.", paint(BOLD, &opened.channel.name)));
        if let Some(end) = opened.expires.get(&format!("{setting}_previous")).and_then(|end| end.as_str()) {
            out.note(paint(DIM, format!("The old one is good until {end}.")));
        }
    } else {
        let opened = channels.rotate_key(&args.channel, keep_for.unwrap_or_default()).await?;
        let at = safe_addresses(app, &channels, out).await?;
        out.json(&with_key(&channels, &opened, &at)?);
        out.line(format!("{} has a new key. Give its sender the new URL.", paint(BOLD, &opened.channel.name)));
        tell_url(out, &opened, &at)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn length(app: &App, time: &str) -> Result<Duration> {
    let seconds = seconds(&app.target.client().await?, time).await?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(length) if length.as_secs() <= 366 * 86_400 => Ok(length),
        _ => bail!("--keep-for takes a time between 0 and a year"),
    }
}
