//! What the channel commands share: the form of the answer, the way to the channels, the addresses of the server.

use anyhow::Result;
use clap::ValueEnum;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_server::channels::{Channels, Opened, WebhookUrl};
use serde_json::{Value, json};

use crate::Desk;
use crate::output::{DIM, Output, WARN, paint};

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
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// What senders are given as the server's address.
pub fn public_base() -> Option<String> {
    variable("PUBLIC_BASE_URL")
}

/// Where the server answers on this machine.
pub fn local_base() -> String {
    variable("API_URL").unwrap_or_else(|| USUAL_ADDRESS.to_owned())
}

pub fn webhook_url(opened: &Opened) -> Result<WebhookUrl> {
    Ok(opened.webhook_url(&public_base().unwrap_or_else(local_base))?)
}

/// Id, key and URL of a channel, as after making one.
pub fn with_key(channels: &Channels, opened: &Opened) -> Result<Value> {
    let url = webhook_url(opened)?;
    let mut shown = json!(channels.summary(opened));
    shown["ingestion_key"] = json!(opened.key()?);
    shown["webhook_url"] = json!(url.webhook_url);
    shown["url_with_overrides"] = json!(url.url_with_overrides);
    Ok(shown)
}

/// Tells where to send, and what stands in the way of it.
pub fn tell_url(out: Output, opened: &Opened) -> Result<()> {
    let url = webhook_url(opened)?;
    out.listing(format!("  id    {}", opened.channel.id));
    out.listing(format!("  key   {}", opened.key()?));
    out.listing(format!("  url   {}", url.url_with_overrides));
    if url.url_with_overrides != url.webhook_url {
        out.note(paint(DIM, "Paste it whole: what follows # makes Twilio repeat a request it could not deliver."));
    }
    if public_base().is_none() && opened.channel.settings.text("public_url").is_none() {
        out.note(paint(WARN, "PUBLIC_BASE_URL is not set, so this URL works on this machine only."));
    }
    Ok(())
}
