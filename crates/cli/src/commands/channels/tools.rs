//! What the channel commands share: the form of the answer, the way to the channels, the addresses of the server.

use anyhow::Result;
use clap::ValueEnum;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_server::channels::{Addresses, Channels, Opened, WebhookUrl};
use serde_json::{Value, json};

use crate::Desk;
use crate::output::{DIM, Output, WARN, paint};
use crate::serving::Serving;

/// Where a server listens that was not told otherwise.
const USUAL_ADDRESS: &str = "http://127.0.0.1:54321";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    Json,
}

/// The form of the answer.
#[derive(Debug, clap::Args)]
pub struct Form {
    /// In which form; `json` is the same as --json
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Format::Text)]
    form: Format,
}

impl Form {
    pub fn of(&self, desk: &Desk) -> Output {
        Output { json: desk.out.json || self.form == Format::Json, ..desk.out }
    }
}

/// The channels of this database, opened with the master key of this home.
pub async fn channels(desk: &Desk) -> Result<Channels> {
    let url = desk.place.url().await?;
    let keys = MasterKeys::load(desk.place.home()?.path())?;
    Ok(Channels::new(gleaner::pool(&url, 4)?, keys))
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Where the server is: what senders are given as its address, and where it answers on this machine. One that runs in this home may
/// have had to take another port than the usual.
pub fn addresses(desk: &Desk) -> Addresses {
    let running = || desk.place.home().ok().and_then(|home| Serving::find(home.path())).map(|serving| serving.url());
    let local = variable("API_URL").or_else(running).unwrap_or_else(|| USUAL_ADDRESS.to_owned());
    Addresses { public: variable("PUBLIC_BASE_URL"), local: Some(local) }
}

fn webhook_url(opened: &Opened, at: &Addresses) -> Result<WebhookUrl> {
    let base = at.public.as_deref().or(at.local.as_deref()).unwrap_or(USUAL_ADDRESS);
    Ok(opened.webhook_url(base)?)
}

/// Id, key and URL of a channel, as after making one.
pub fn with_key(channels: &Channels, opened: &Opened, at: &Addresses) -> Result<Value> {
    let url = webhook_url(opened, at)?;
    let mut shown = json!(channels.summary(opened));
    shown["ingestion_key"] = json!(opened.key()?);
    shown["webhook_url"] = json!(url.webhook_url);
    shown["url_with_overrides"] = json!(url.url_with_overrides);
    Ok(shown)
}

/// Tells where to send, and what stands in the way of it.
pub fn tell_url(out: Output, opened: &Opened, at: &Addresses) -> Result<()> {
    let url = webhook_url(opened, at)?;
    out.listing(format!("  id    {}", opened.channel.id));
    out.listing(format!("  key   {}", opened.key()?));
    out.listing(format!("  url   {}", url.url_with_overrides));
    if url.url_with_overrides != url.webhook_url {
        out.note(paint(DIM, "Paste it whole: what follows # makes Twilio repeat a request it could not deliver."));
    }
    if at.public.is_none() && opened.channel.settings.text("public_url").is_none() {
        out.note(paint(WARN, "PUBLIC_BASE_URL is not set, so this URL works on this machine only."));
    }
    Ok(())
}
