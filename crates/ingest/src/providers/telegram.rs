//! Telegram: messages that people send to a bot.

mod update;

use http::{HeaderMap, HeaderValue, Method};
use serde_json::json;

use crate::provider::{Message, Sample, Setting, Verified};
use crate::refusal::Why;
use crate::{Channel, Inbound, Provider, Refusal, Request, crypt, json, providers};

#[derive(Debug)]
pub struct Telegram;

const SETTINGS: &[Setting] = &[
    Setting { name: "secret_token", secret: true, required: true, about: "the secret_token given to setWebhook" },
    Setting { name: "bot_token", secret: true, required: false, about: "the bot's token, to fetch pictures and voice messages" },
];

const SECRET: &str = "x-telegram-bot-api-secret-token";

impl Provider for Telegram {
    fn code(&self) -> &'static str {
        "telegram"
    }

    fn title(&self) -> &'static str {
        "Telegram"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn check(&self, channel: &Channel) -> Vec<String> {
        // Telegram refuses any other secret, and then nothing arrives without a visible reason.
        let fits = |secret: &str| secret.len() <= 256 && secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let mut wrong = providers::not_text(channel, &["secret_token", "bot_token"]);
        if channel.settings.both("secret_token").into_iter().any(|secret| !fits(secret)) {
            wrong.push("secret_token is none that Telegram takes: write up to 256 letters, digits, _ and -".to_owned());
        }
        wrong
    }

    fn cautions(&self, channel: &Channel) -> Vec<String> {
        let missing = channel.settings.text("bot_token").is_none();
        let caution = "without bot_token pictures and voice messages are listed and cannot be fetched";
        missing.then(|| caution.to_owned()).into_iter().collect()
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        let secrets = channel.settings.both("secret_token");
        if secrets.is_empty() {
            return Err(Why::Unconfigured.into());
        }
        let given = request.header(SECRET).ok_or(Why::Unsigned)?;
        if !crypt::any_same_secret(given.as_bytes(), secrets) {
            return Err(Why::Mismatch.into());
        }
        Ok(Verified::default())
    }

    fn normalise(&self, _: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal> {
        let update = json::read(request.body)?;
        let id = update["update_id"].as_u64().ok_or_else(|| Refusal::Malformed("update_id is missing".to_owned()))?;
        Ok(match update::event(&update, id) {
            Some(event) => Inbound::Events { events: vec![event], remember: Vec::new() },
            // Polls, members who join or leave, and inline queries are not messages to us.
            None => Inbound::Nothing { remember: Vec::new(), warning: None },
        })
    }

    fn compose(&self, channel: &Channel, url: &str, unix_now: i64, message: &Message<'_>) -> Result<Sample, String> {
        let secrets = channel.settings.both("secret_token");
        let secret = secrets.first().ok_or("the channel has no secret_token")?;
        let id = message.id.and_then(|id| id.parse::<u64>().ok()).unwrap_or(1);
        let body = json!({
            // Telegram's own counters are 32 bits wide, so no real update has this id.
            "update_id": (1_u64 << 40) + unix_now.unsigned_abs() + (id << 36),
            "message": {
                "message_id": id,
                "date": unix_now,
                "chat": {"id": id, "type": "private", "first_name": message.name()},
                "from": {"id": id, "is_bot": false, "first_name": message.name()},
                "text": message.text(),
            },
        });
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let mut secret = HeaderValue::try_from(*secret).map_err(|_| "secret_token has characters that no header can carry")?;
        secret.set_sensitive(true);
        headers.insert(SECRET, secret);
        Ok(Sample { method: Method::POST, url: url.to_owned(), headers, body: body.to_string().into_bytes() })
    }
}
