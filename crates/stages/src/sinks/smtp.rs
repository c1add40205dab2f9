//! Mail by SMTP.

use std::time::Duration;

use async_trait::async_trait;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, SinglePart};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use serde_json::json;

use super::{Message, NotSent, Sent, Sink, refused, refused_for_good, unknown};

#[derive(Debug, Clone)]
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Smtp {
    /// `url` is `smtps://user:password@host`, `smtp://host:587?tls=required`, or `smtp://127.0.0.1:1025` without encryption.
    pub fn new(url: &str, from: &str) -> Result<Self, String> {
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|error| error.to_string())?;
        let from = from.parse().map_err(|error| format!("{from:?} is no mail address: {error}"))?;
        Ok(Self { transport: transport.timeout(Some(Duration::from_secs(30))).build(), from })
    }

    fn mail(&self, key: &str, message: &Message) -> Result<(lettre::Message, String), String> {
        let to: Mailbox = message.to.parse().map_err(|error| format!("{:?} is no mail address: {error}", message.to))?;
        // SMTP has no idempotency. The same id for every try lets mail programs show one message.
        let id = format!("<{key}@{}>", self.from.email.domain());
        let mut mail = lettre::Message::builder().from(self.from.clone()).to(to).message_id(Some(id.clone()));
        mail = mail.subject(message.subject.clone().unwrap_or_default());
        if let Some(earlier) = message.extra("in_reply_to") {
            mail = mail.in_reply_to(earlier.to_owned()).references(earlier.to_owned());
        }
        // Written by a program: other programs must not answer it (RFC 3834).
        mail = mail.raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()));
        if let Some(url) = message.extra("unsubscribe_url") {
            mail = mail.raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("List-Unsubscribe"), format!("<{url}>"))).raw_header(
                HeaderValue::new(HeaderName::new_from_ascii_str("List-Unsubscribe-Post"), "List-Unsubscribe=One-Click".to_owned()),
            );
        }
        let body = SinglePart::builder().header(ContentType::TEXT_PLAIN).body(message.text.clone());
        Ok((mail.singlepart(body).map_err(|error| error.to_string())?, id))
    }
}

#[async_trait]
impl Sink for Smtp {
    async fn send(&self, key: &str, message: &Message, within: Duration) -> Result<Sent, NotSent> {
        let (mail, id) = self.mail(key, message).map_err(refused_for_good)?;
        // The transport's own timeout covers connecting only.
        let sent = tokio::time::timeout(within, self.transport.send(mail)).await;
        match sent {
            Ok(Ok(response)) => {
                let said: Vec<&str> = response.message().collect();
                let said = said.join(" ");
                // "Ok: queued as ID": services that relay mail report bounces under their own id.
                let receipt_id = said.split_once("queued as ").and_then(|(_, id)| id.split_whitespace().next()).map(str::to_owned);
                Ok(Sent { message_id: Some(id), receipt_id, answer: json!({"code": response.code().to_string(), "message": said}) })
            }
            Ok(Err(error)) if error.is_permanent() => Err(refused_for_good(format!("the mail server refuses: {error}"))),
            Ok(Err(error)) if error.is_transient() => Err(refused(format!("the mail server refuses for now: {error}"))),
            Ok(Err(error)) if error.is_client() || is_unconnected(&error) => Err(refused(format!("connect to the mail server: {error}"))),
            Ok(Err(error)) => Err(unknown(format!("the mail server did not answer: {error}"))),
            Err(_) => Err(unknown("the mail server did not answer in time")),
        }
    }
}

/// Whether the connection was never made, so that nothing can have been sent.
fn is_unconnected(error: &lettre::transport::smtp::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            return matches!(
                io.kind(),
                std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound | std::io::ErrorKind::HostUnreachable
            );
        }
        source = inner.source();
    }
    false
}
