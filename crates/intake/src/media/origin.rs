//! Fetches a file from its provider, with the credentials of that provider only.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use gleaner_ingest::Channel;
use http::HeaderValue;
use reqwest::{Response, StatusCode, Url};
use serde_json::Value;
use tokio::time::Instant;

use super::guard::is_below;
use super::medium::Place;
use super::{Failure, Media};
use crate::mailboxes;

/// The limit for the description of a file, which is small.
const DESCRIPTION_LIMIT: usize = 64 * 1024;
/// The hosts of WhatsApp's files.
const WHATSAPP_HOSTS: [&str; 4] = ["fbsbx.com", "facebook.com", "whatsapp.net", "fbcdn.net"];

/// A file that is being fetched.
pub(super) struct Fetched {
    pub content_type: Option<String>,
    /// Its size, if the provider sends it.
    pub length: Option<u64>,
    pub stream: BoxStream<'static, Result<Bytes, Failure>>,
}

impl Media {
    /// Begins to fetch. `channel` is the one that recorded the file. Without it there are no credentials to fetch with, and only
    /// a file at a URL can be fetched.
    pub(super) async fn fetch(&self, place: &Place, channel: Option<Arc<Channel>>) -> Result<Fetched, Failure> {
        let code = channel.as_ref().map_or("", |channel| channel.provider_code.as_str());
        match (place, &channel) {
            (Place::Url(url), _) => {
                let url = parse(url)?;
                match &channel {
                    Some(channel) if code == "twilio" => self.fetch_twilio(url, channel).await,
                    _ => self.open(self.guard.get(url, None).await?),
                }
            }
            (Place::Reference(id), Some(channel)) if code == "whatsapp" => self.fetch_whatsapp(id, channel).await,
            (Place::Reference(id), Some(channel)) if code == "telegram" => self.fetch_telegram(id, channel).await,
            (Place::Gmail { message, attachment }, Some(channel)) if code == "gmail" => {
                let bytes = self.gmail.attachment(channel.clone(), message, attachment).await.map_err(googles)?;
                let length = Some(bytes.len() as u64);
                Ok(Fetched { content_type: None, length, stream: stream::once(async { Ok(bytes.into()) }).boxed() })
            }
            (Place::File(_) | Place::Nowhere | Place::Reference(_) | Place::Gmail { .. }, _) => Err(Failure::Gone),
        }
    }

    /// Twilio needs the account's credentials, and redirects to a URL that is open for hours. The credentials are not sent
    /// there.
    async fn fetch_twilio(&self, url: Url, channel: &Channel) -> Result<Fetched, Failure> {
        let url = match &self.options.twilio_base {
            Some(base) => match url.as_str().strip_prefix("https://api.twilio.com/") {
                Some(rest) => parse(&format!("{base}/{rest}"))?,
                None => url,
            },
            None => url,
        };
        let host = url.host_str().unwrap_or_default();
        let ours = self.options.twilio_base.as_deref().and_then(|base| Url::parse(base).ok()).filter(|base| is_below(base, &url));
        let is_twilio =
            url.scheme() == "https" && (host == "api.twilio.com" || (host.starts_with("api.") && host.ends_with(".twilio.com")));
        let folder = match &ours {
            Some(base) => base.path().trim_end_matches('/'),
            None if is_twilio && url.port().is_none() => "",
            None => return Err(Failure::Refused("its address is none of Twilio's".into())),
        };
        let setting = |name: &str| channel.settings.text(name);
        let (Some(account), Some(token)) = (setting("account_sid"), setting("auth_token")) else {
            return Err(Failure::Provider("the channel needs account_sid and auth_token to fetch it".into()));
        };
        if !url.path().strip_prefix(folder).is_some_and(|path| is_twilio_media(path, account)) || url.query().is_some() {
            return Err(Failure::Refused("its address is none of a recording or message of the channel's account".into()));
        }
        let credentials = STANDARD.encode(format!("{account}:{token}"));
        self.open(self.guard.get(url, secret(format!("Basic {credentials}"))).await?)
    }

    /// WhatsApp returns, for the file's id, a URL that is valid for a few minutes. Both calls need the token.
    async fn fetch_whatsapp(&self, id: &str, channel: &Channel) -> Result<Fetched, Failure> {
        let token = channel.settings.text("access_token");
        let token = token.ok_or_else(|| Failure::Provider("the channel needs access_token to fetch it".into()))?;
        let bearer = secret(format!("Bearer {token}"));
        let base = &self.options.whatsapp_base;
        let described = self.describe(parse(&format!("{base}/{}", number(id)?))?, bearer.clone()).await?;
        let url = parse(described["url"].as_str().unwrap_or_default())?;
        let host = url.host_str().unwrap_or_default();
        let within = |domain: &str| host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        let is_theirs = url.scheme() == "https" && WHATSAPP_HOSTS.into_iter().any(within);
        let is_ours = Url::parse(base).is_ok_and(|base| base.origin() == url.origin());
        if !is_theirs && !is_ours {
            return Err(Failure::Refused("its address is none of WhatsApp's".into()));
        }
        let mut fetched = self.open(self.guard.get(url, bearer).await?)?;
        fetched.content_type = described["mime_type"].as_str().map(str::to_owned).or(fetched.content_type);
        Ok(fetched)
    }

    /// Telegram's URLs contain the token, so they are never shown or logged.
    async fn fetch_telegram(&self, id: &str, channel: &Channel) -> Result<Fetched, Failure> {
        let token = channel.settings.text("bot_token");
        let token = token.ok_or_else(|| Failure::Provider("the channel needs bot_token to fetch it".into()))?;
        let base = &self.options.telegram_base;
        let described = self.describe(parse(&format!("{base}/bot{token}/getFile?file_id={}", plain(id)?))?, None).await?;
        let path = described["result"]["file_path"].as_str().unwrap_or_default();
        let is_path =
            !path.is_empty() && path.split('/').all(|part| !part.is_empty() && part != ".." && !part.contains(['?', '#', '%', '\\']));
        if !is_path {
            return Err(Failure::Provider("it does not say where the file is".into()));
        }
        self.open(self.guard.get(parse(&format!("{base}/file/bot{token}/{path}"))?, None).await?)
    }

    /// Fetches a small JSON response.
    async fn describe(&self, url: Url, authorization: Option<HeaderValue>) -> Result<Value, Failure> {
        let mut fetched = self.open(self.guard.get(url, authorization).await?)?;
        let mut body = Vec::new();
        while let Some(piece) = fetched.stream.next().await {
            body.extend_from_slice(&piece?);
            if body.len() > DESCRIPTION_LIMIT {
                return Err(Failure::Provider("it describes the file at unusual length".into()));
            }
        }
        serde_json::from_slice(&body).map_err(|_| Failure::Provider("it does not describe the file as documented".into()))
    }

    /// The body of a response, with limits on size and time.
    fn open(&self, response: Response) -> Result<Fetched, Failure> {
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Failure::Gone),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(Failure::Provider("it does not accept the channel's credentials".into()));
            }
            other => return Err(Failure::Provider(format!("it answers {}", other.as_u16()))),
        }
        let limit = self.options.limit;
        let too_large = move || Failure::Provider(format!("the file has more than {limit} bytes"));
        let length = response.content_length();
        if length.is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let until = Instant::now() + self.options.within;
        let body = response.bytes_stream().boxed();
        let stream = stream::try_unfold((body, 0_u64), move |(mut body, mut size)| async move {
            let piece = tokio::time::timeout_at(until, body.next()).await;
            let piece = match piece.map_err(|_| Failure::Provider("it takes too long".into()))? {
                None => return Ok(None),
                Some(piece) => piece.map_err(|_| Failure::Provider("the connection to it broke".into()))?,
            };
            size += piece.len() as u64;
            if size > limit { Err(too_large()) } else { Ok(Some((piece, (body, size)))) }
        });
        Ok(Fetched { content_type, length, stream: stream.boxed() })
    }
}

fn parse(url: &str) -> Result<Url, Failure> {
    Url::parse(url).map_err(|_| Failure::Refused("its address is none".into()))
}

/// A provider's id as part of a URL.
fn plain(id: &str) -> Result<&str, Failure> {
    let good = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if good { Ok(id) } else { Err(Failure::Refused("its id is none".into())) }
}

/// The id of a WhatsApp file. A name, such as `me`, would be another object of the account.
fn number(id: &str) -> Result<&str, Failure> {
    let good = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    if good { Ok(id) } else { Err(Failure::Refused("its id is none".into())) }
}

/// Whether the path is that of a recording, or of a file of a message, in this account.
fn is_twilio_media(path: &str, account: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let sid = |part: &str, kinds: &[&str]| {
        let sid = part.strip_suffix(".wav").or_else(|| part.strip_suffix(".mp3")).unwrap_or(part);
        kinds.iter().any(|kind| sid.starts_with(kind)) && sid.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let ["", "2010-04-01", "Accounts", of, rest @ ..] = parts.as_slice() else { return false };
    *of == account
        && match rest {
            ["Recordings", recording] => sid(recording, &["RE"]),
            ["Calls", call, "Recordings", recording] => sid(call, &["CA"]) && sid(recording, &["RE"]),
            ["Conferences", conference, "Recordings", recording] => sid(conference, &["CF"]) && sid(recording, &["RE"]),
            ["Messages", message, "Media", file] => sid(message, &["SM", "MM"]) && sid(file, &["ME"]),
            _ => false,
        }
}

fn secret(value: String) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn googles(error: mailboxes::Error) -> Failure {
    match error {
        mailboxes::Error::Gone => Failure::Gone,
        mailboxes::Error::Database(error) => Failure::Away(error.to_string()),
        mailboxes::Error::Queue(error) => Failure::Away(error.to_string()),
        other => Failure::Provider(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
