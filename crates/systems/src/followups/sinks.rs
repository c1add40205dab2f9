//! The ways out that are configured, by name, and those of the channels that messages come from.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use gleaner_stages::sinks::{Command, Http, Message, Sink, Smtp, Telegram, Twilio};
use serde_json::{Map, Value};

use super::settings::Ways;

const TELEGRAM: &str = "https://api.telegram.org";
const TWILIO: &str = "https://api.twilio.com";

/// The channels that messages come from, with their secrets.
#[async_trait]
pub trait Channels: std::fmt::Debug + Send + Sync {
    /// None if there is no such channel, or it is paused.
    async fn channel(&self, id: &str) -> Result<Option<Channel>, String>;
}

/// One channel, opened.
#[derive(Debug, Clone)]
pub struct Channel {
    pub provider_code: String,
    pub settings: Map<String, Value>,
}

#[derive(Debug)]
pub(super) struct Sinks {
    known: BTreeMap<&'static str, Arc<dyn Sink>>,
    client: reqwest::Client,
    ways: Ways,
}

impl Sinks {
    pub(super) fn new(ways: &Ways) -> Result<Self, String> {
        let client =
            gleaner_stages::client_builder().redirect(reqwest::redirect::Policy::none()).build().map_err(|error| error.to_string())?;
        let mut known: BTreeMap<&'static str, Arc<dyn Sink>> = BTreeMap::new();
        if ways.http_url.is_some() || !ways.http_allow.is_empty() {
            let (url, token, allow) = (ways.http_url.clone(), ways.http_token.clone(), ways.http_allow.clone());
            known.insert("http", Arc::new(Http { client: client.clone(), url, token, allow }));
        }
        match (&ways.smtp_url, &ways.mail_from) {
            (Some(url), Some(from)) => drop(known.insert("email", Arc::new(Smtp::new(url, from)?))),
            (Some(_), None) => return Err("smtp_url needs mail_from, the address that mail is sent from".into()),
            _ => {}
        }
        if let Some(token) = &ways.telegram_token {
            known.insert("telegram", Arc::new(telegram(&client, ways, token)));
        }
        if let (Some(account), Some(token)) = (&ways.twilio_account, &ways.twilio_token) {
            let sink = |from: &Option<String>, whatsapp| {
                Arc::new(Twilio { from: from.clone(), whatsapp, ..twilio(&client, ways, account, token) })
            };
            known.insert("sms", sink(&ways.twilio_from, false));
            known.insert("whatsapp", sink(&ways.twilio_whatsapp_from, true));
        }
        if let Some(line) = &ways.command {
            known.insert("command", Arc::new(Command { line: line.clone(), folder: ways.folder.clone() }));
        }
        Ok(Self { known, client, ways: ways.clone() })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Whether channels can be opened here.
    pub(super) fn has_channels(&self) -> bool {
        self.ways.channels.is_some()
    }

    pub(super) fn knows_keys(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|sink| sink.knows_keys())
    }

    /// The sink of a message. The error says what to configure.
    pub(super) async fn get(&self, message: &Message) -> Result<Arc<dyn Sink>, String> {
        let lacks = || format!("nothing sends by {:?} here: configure it, or let another agent work the queue followups", message.sink);
        let Some(id) = &message.channel else { return self.known.get(message.sink.as_str()).cloned().ok_or_else(lacks) };
        let channels = self.ways.channels.as_ref().ok_or_else(lacks)?;
        let channel = channels.channel(id).await?.ok_or_else(|| format!("the channel {id} is gone or paused"))?;
        let text = |name: &str| channel.settings.get(name).and_then(Value::as_str).map(str::to_owned);
        let need = |name: &str| text(name).ok_or_else(|| format!("the channel {id} has no {name}: set it to answer through it"));
        Ok(match message.sink.as_str() {
            "telegram" => Arc::new(telegram(&self.client, &self.ways, &need("bot_token")?)),
            "sms" | "whatsapp" => {
                let (account, token) = (need("account_sid")?, need("auth_token")?);
                let mut sink = twilio(&self.client, &self.ways, &account, &token);
                sink.whatsapp = message.sink == "whatsapp";
                // The number that was written to answers.
                sink.from = message.extra.get("from").and_then(Value::as_str).map(str::to_owned);
                Arc::new(sink)
            }
            _ => return Err(lacks()),
        })
    }
}

fn telegram(client: &reqwest::Client, ways: &Ways, token: &str) -> Telegram {
    let base = ways.telegram_url.clone().unwrap_or_else(|| TELEGRAM.to_owned());
    Telegram { client: client.clone(), base, token: token.to_owned() }
}

fn twilio(client: &reqwest::Client, ways: &Ways, account: &str, token: &str) -> Twilio {
    Twilio {
        client: client.clone(),
        base: ways.twilio_url.clone().unwrap_or_else(|| TWILIO.to_owned()),
        account: account.to_owned(),
        token: token.to_owned(),
        from: None,
        whatsapp: false,
        status_callback: ways.status_callback.clone(),
    }
}
