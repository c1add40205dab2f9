//! A Telegram bot: `sendMessage`.

use std::time::Duration;

use async_trait::async_trait;
use gleaner::Failure;
use serde_json::{Value, json};

use super::{Message, NotSent, SENDING, Sent, Sink, read, refused_for_good, unanswered, unknown};

/// Telegram's limit, in characters.
const LONGEST: usize = 4096;

#[derive(Clone)]
pub struct Telegram {
    pub client: reqwest::Client,
    pub base: String,
    pub token: String,
}

impl std::fmt::Debug for Telegram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telegram").field("base", &self.base).finish_non_exhaustive()
    }
}

#[async_trait]
impl Sink for Telegram {
    async fn send(&self, _: &str, message: &Message, within: Duration) -> Result<Sent, NotSent> {
        const WHAT: &str = "Telegram";
        if message.text.chars().count() > LONGEST {
            return Err(refused_for_good(format!("the text has more than the {LONGEST} characters that Telegram takes")));
        }
        let chat = message.to.strip_prefix("telegram:").unwrap_or(&message.to);
        let url = format!("{}/bot{}/sendMessage", self.base.trim_end_matches('/'), self.token);
        let request = self.client.post(url).timeout(within).json(&json!({"chat_id": chat, "text": message.text}));
        let response = request.send().await.map_err(|error| unanswered(WHAT, error))?;
        let status = response.status();
        let answer: Value = serde_json::from_str(&read(response).await).unwrap_or(Value::Null);
        if answer["ok"] == true {
            return Ok(Sent {
                message_id: Some(answer["result"]["message_id"].to_string()),
                answer: answer["result"].clone(),
                ..Sent::default()
            });
        }
        let said = answer["description"].as_str().unwrap_or_default();
        let mut failure = Failure::new(format!("{WHAT} answered {}: {said}", status.as_u16())).category(SENDING);
        match status.as_u16() {
            // The person has blocked the bot, or never started it.
            403 => Err(NotSent::Unwanted(format!("{WHAT}: {said}"))),
            429 => {
                failure.retry_in = answer["parameters"]["retry_after"].as_u64().map(Duration::from_secs);
                Err(NotSent::Refused(failure))
            }
            400..=499 => Err(NotSent::Refused(failure.for_good())),
            _ => Err(unknown(failure.message)),
        }
    }
}
