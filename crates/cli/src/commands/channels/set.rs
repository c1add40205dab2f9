//! `gleaner channels set`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner_intake::channels::Changes;
use serde_json::Value;

use super::rotate::length;
use super::settings::Settings;
use super::tools::{Form, channels};
use crate::App;
use crate::output::{BOLD, DIM, paint};

/// Change a channel; what is not named stays.
///
/// A secret that the sender cannot change at the same moment is better rotated: `gleaner channels rotate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels set 'US support' --owner bob@example.com --set default_region=GB
  gleaner channels set 'US support' --unset account_sid --name 'UK support'
  gleaner channels set Hook --set secret_previous=@old.txt --keep-for '2 hours'
  gleaner channels set Mail --set-env basic_auth.password=MAIL_PASSWORD")]
pub(crate) struct Args {
    /// Name or id
    channel: String,
    #[command(flatten)]
    settings: Settings,
    /// Remove a setting
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// Rename it
    #[arg(long)]
    name: Option<String>,
    /// Owner of what arrives, by e-mail address or id
    #[arg(long, value_name = "EMAIL", conflicts_with = "no_owner")]
    owner: Option<String>,
    /// What arrives has no owner
    #[arg(long)]
    no_owner: bool,
    /// Whether a contact is created for every unknown sender
    #[arg(long, value_name = "true|false")]
    auto_create_contacts: Option<bool>,
    /// How long a NAME_previous among the settings stays valid: '2 hours' [default: a day]
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
    let mut settings = args.settings.read()?;
    let given: Vec<String> = settings.iter().map(|(name, _)| name.clone()).collect();
    settings.extend(args.unset.into_iter().map(|name| (name, Value::Null)));
    let owner = if args.no_owner { Some(None) } else { args.owner.map(Some) };
    let changes = Changes { name: args.name, owner, is_active: None, auto_create_contacts: args.auto_create_contacts, settings, keep_for };
    if changes.name.is_none() && changes.owner.is_none() && changes.auto_create_contacts.is_none() && changes.settings.is_empty() {
        bail!("nothing to change: name a setting with --set, or see `gleaner channels set --help`");
    }
    let channels = channels(app).await?;
    let opened = channels.set(&args.channel, changes).await?;
    out.json(&channels.summary(&opened));
    out.line(format!("Changed {}. Servers know within five seconds.", paint(BOLD, &opened.channel.name)));
    for name in given {
        if let Some(end) = opened.expires.get(&name).and_then(Value::as_str) {
            out.note(paint(DIM, format!("{name} is good until {end}; --keep-for changes that.")));
        }
    }
    Ok(ExitCode::SUCCESS)
}
