//! Twilio: text messages and WhatsApp.

use std::time::Duration;

use async_trait::async_trait;
use gleaner::Failure;
use serde_json::Value;

use super::{Message, NotSent, SENDING, Sent, Sink, read, refused, refused_for_good, unanswered, unknown};

/// Twilio's limit, in characters.
const LONGEST: usize = 1600;
/// The recipient has opted out with the carrier.
const OPTED_OUT: i64 = 21610;
/// The number cannot get messages.
const NO_MOBILE: [i64; 4] = [21211, 21614, 21635, 21217];

#[derive(Clone)]
pub struct Twilio {
    pub client: reqwest::Client,
    pub base: String,
    pub account: String,
    pub token: String,
    /// The number or messaging service of ours; without one the message must name it.
    pub from: Option<String>,
    pub whatsapp: bool,
    /// Where Twilio reports what becomes of the message.
    pub status_callback: Option<String>,
}

impl std::fmt::Debug for Twilio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Twilio").field("base", &self.base).field("account", &self.account).finish_non_exhaustive()
    }
}

impl Twilio {
    fn form(&self, message: &Message) -> Result<Vec<(&'static str, String)>, NotSent> {
        let number = |number: &str| match number.strip_prefix("whatsapp:").unwrap_or(number) {
            bare if self.whatsapp => format!("whatsapp:{bare}"),
            bare => bare.to_owned(),
        };
        let from = message.extra("from").map(str::to_owned).or_else(|| self.from.clone());
        let from = from.ok_or_else(|| refused("Twilio has no number to send from: set FOLLOWUP_TWILIO_FROM"))?;
        let mut form = vec![("To", number(&message.to))];
        form.push(if from.starts_with("MG") { ("MessagingServiceSid", from) } else { ("From", number(&from)) });
        // Outside of 24 hours after the last message WhatsApp takes templates only.
        if let Some(template) = message.extra("content_sid") {
            form.push(("ContentSid", template.to_owned()));
            if let Some(variables) = message.extra.get("content_variables") {
                form.push(("ContentVariables", variables.to_string()));
            }
        } else if message.text.chars().count() > LONGEST {
            return Err(refused_for_good(format!("the text has more than the {LONGEST} characters that Twilio takes")));
        } else {
            form.push(("Body", message.text.clone()));
        }
        form.extend(self.status_callback.clone().map(|url| ("StatusCallback", url)));
        Ok(form)
    }
}

#[async_trait]
impl Sink for Twilio {
    async fn send(&self, _: &str, message: &Message, within: Duration) -> Result<Sent, NotSent> {
        const WHAT: &str = "Twilio";
        let url = format!("{}/2010-04-01/Accounts/{}/Messages.json", self.base.trim_end_matches('/'), self.account);
        let request = self.client.post(url).timeout(within).basic_auth(&self.account, Some(&self.token)).form(&self.form(message)?);
        let response = request.send().await.map_err(|error| unanswered(WHAT, error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let answer: Value = serde_json::from_str(&read(response).await).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(Sent { message_id: answer["sid"].as_str().map(str::to_owned), answer, ..Sent::default() });
        }
        let (code, said) = (answer["code"].as_i64().unwrap_or_default(), answer["message"].as_str().unwrap_or_default());
        let message = format!("{WHAT} answered {}: {said} ({code})", status.as_u16());
        match (status.as_u16(), code) {
            (_, OPTED_OUT) => Err(NotSent::Unwanted(format!("{WHAT}: {said}"))),
            (429, _) => {
                let mut failure = Failure::new(message).category(SENDING);
                failure.retry_in = crate::failure::retry_after(&headers);
                Err(NotSent::Refused(failure))
            }
            (_, code) if NO_MOBILE.contains(&code) => Err(refused_for_good(format!("{message}: the number takes no messages"))),
            (400..=499, _) => Err(refused_for_good(message)),
            // Twilio has no idempotency: a request that failed on their side may have been sent.
            _ => Err(unknown(message)),
        }
    }
}
