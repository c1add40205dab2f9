//! What the channel commands share: the form of the answer, the way to the channels, the addresses of the server.

use anyhow::Result;
use clap::ValueEnum;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_intake::channels::{Addresses, Channels, Opened, Program, WebhookUrl};
use serde_json::{Value, json};

use crate::App;
use crate::output::{DIM, Output, WARN, paint};
use crate::serving::Serving;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    Json,
}

/// The form of the answer.
#[derive(Debug, clap::Args)]
pub(super) struct Form {
    /// In which form; `json` is the same as --json
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Format::Text)]
    form: Format,
}

impl Form {
    pub(super) fn of(&self, app: &App) -> Output {
        Output { json: app.out.json || self.form == Format::Json, ..app.out }
    }
}

/// The channels of this database, opened with the master key of this home.
pub(super) async fn channels(app: &App) -> Result<Channels> {
    let url = app.target.url().await?;
    let keys = MasterKeys::load(app.target.home()?.path())?;
    Ok(Channels::new(gleaner::pool(&url, 4)?, keys))
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Where the server is: what senders are given as its address, and where it answers on this machine.
pub(super) fn addresses(app: &App) -> Result<Addresses> {
    let serving = Serving::find(app.target.home()?.path());
    let local = variable("API_URL").or_else(|| serving.as_ref().map(Serving::url));
    Ok(Addresses { public: variable("PUBLIC_BASE_URL").or_else(|| serving.and_then(|it| it.public_base)), local })
}

/// The same, to print webhook URLs with. A URL contains the key: it names no port that another program holds.
pub(super) async fn safe_addresses(app: &App, channels: &Channels, out: Output) -> Result<Addresses> {
    let mut found = addresses(app)?;
    if let Some(local) = &found.local
        && channels.find_program(local).await == Program::Another
    {
        out.note(paint(WARN, format!("{local} is held by another program, or by a server with another master key, so no URL names it.")));
        found.local = None;
    }
    Ok(found)
}

/// None where no address is known: nothing runs in this home, and none was set.
fn webhook_url(opened: &Opened, at: &Addresses) -> Result<Option<WebhookUrl>> {
    let base = opened.channel.settings.text("public_url").or(at.public.as_deref()).or(at.local.as_deref());
    Ok(base.map(|base| opened.webhook_url(base)).transpose()?)
}

/// Id, key and URL of a channel, as after making one.
pub(super) fn with_key(channels: &Channels, opened: &Opened, at: &Addresses) -> Result<Value> {
    let url = webhook_url(opened, at)?;
    let mut shown = json!(channels.summary(opened));
    shown["ingestion_key"] = json!(opened.key()?);
    shown["webhook_url"] = json!(url.as_ref().map(|url| &url.webhook_url));
    shown["url_with_overrides"] = json!(url.as_ref().map(|url| &url.url_with_overrides));
    Ok(shown)
}

/// Prints the webhook URL, and what would keep requests from arriving.
pub(super) fn tell_url(out: Output, opened: &Opened, at: &Addresses) -> Result<()> {
    let url = webhook_url(opened, at)?;
    out.listing(format!("  id    {}", opened.channel.id));
    out.listing(format!("  key   {}", opened.key()?));
    let Some(url) = url else {
        let unknown = "No URL yet: no server runs in this home, and PUBLIC_BASE_URL is not set. `gleaner channels show --reveal` prints it once one does.";
        out.note(paint(WARN, unknown));
        return Ok(());
    };
    out.listing(format!("  url   {}", url.url_with_overrides));
    if url.url_with_overrides != url.webhook_url {
        out.note(paint(DIM, "Paste it whole: what follows # makes Twilio repeat a request it could not deliver."));
    }
    if at.public.is_none() && opened.channel.settings.text("public_url").is_none() {
        out.note(paint(WARN, "PUBLIC_BASE_URL is not set, so this URL works on this machine only."));
    }
    Ok(())
}
