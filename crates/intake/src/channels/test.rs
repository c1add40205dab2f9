//! Sends a correctly signed sample to the real webhook endpoint, and reports what happened to it.
//!
//! A refused sample says little by itself. Sending it again in another way distinguishes a wrong public URL from a server
//! that cannot be reached: once signed for the public address but sent to the local one, and once signed for the local one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gleaner::Acts;
use gleaner_http::database;
use gleaner_ingest::{Message, Sample};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::prove::Program;
use super::url::url;
use super::{Channels, Error, Opened, Result};

/// A sender would not wait longer either.
const PATIENCE: Duration = Duration::from_secs(15);

/// Marks an authentic request as a sample, so that no contact is created for its sender.
pub const MARK: &str = "x-gleaner-test";

/// The addresses at which the server may be reached.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    /// The base URL that senders have: `--url`, the channel's `public_url`, or `PUBLIC_BASE_URL`.
    pub public: Option<String>,
    /// The base URL where the server listens, for comparison.
    pub local: Option<String>,
}

/// The result of the test.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ChannelTest)]
pub struct Tested {
    pub passed: bool,
    /// The base URL that was tested; the whole URL contains the key.
    pub base: String,
    #[schema(required)]
    pub status: Option<u16>,
    /// The activity that was created, marked as a test and cancelled.
    #[schema(required)]
    pub activity_id: Option<Uuid>,
    /// What happened, in a sentence.
    pub verdict: String,
    /// What to do about it.
    pub advice: Vec<String>,
}

/// The result of one attempt to send it.
enum Attempt {
    Let {
        status: u16,
        activity: Option<Uuid>,
    },
    TurnedAway {
        status: u16,
        said: String,
    },
    /// Another program answers there. It was sent neither the key nor the sample.
    Another,
    Unreachable(String),
}

impl Channels {
    /// Sends a sample and reports what happened.
    pub async fn test(&self, name_or_id: &str, addresses: &Addresses) -> Result<Tested> {
        let opened = self.get(name_or_id).await?;
        if !opened.channel.is_active {
            return Err(Error::Mistakes(vec![format!(
                "channel {:?} is paused, so nothing is let in; resume it first",
                opened.channel.name
            )]));
        }
        let own = opened.channel.settings.text("public_url").map(ToOwned::to_owned);
        let public = addresses.public.clone().or(own).or_else(|| addresses.local.clone());
        let Some(public) = public.map(|base| base.trim_end_matches('/').to_owned()) else {
            return Err(Error::Mistakes(vec!["no address to send to: set PUBLIC_BASE_URL, or the channel's public_url".into()]));
        };
        let first = self.attempt(&opened, &public, &public).await?;
        let answered = !matches!(first, Attempt::Unreachable(_));
        let tested = |passed, status, activity_id, verdict: String, advice: Vec<String>| Tested {
            passed,
            base: public.clone(),
            status,
            activity_id,
            verdict,
            advice,
        };
        let (status, outside) = match first {
            Attempt::Let { status, activity } => {
                self.clean_up(&opened, activity).await?;
                let verdict = match activity {
                    Some(_) => format!("{public} let the sample in and stored it"),
                    None => format!("{public} let the sample in; this kind of request stores nothing"),
                };
                return Ok(tested(true, Some(status), activity, verdict, Vec::new()));
            }
            Attempt::TurnedAway { status, said } => (Some(status), format!("{public} answered {status}{said}")),
            Attempt::Another => {
                (None, format!("{public} leads to another program, or to a server with another master key; the key was not sent to it"))
            }
            Attempt::Unreachable(why) => (None, format!("{public} cannot be reached: {why}")),
        };
        let local = addresses.local.as_deref().map(|base| base.trim_end_matches('/')).filter(|local| *local != public);
        let advice = match local {
            Some(local) => self.compare(&opened, &public, local, answered).await?,
            None => vec![advice_without_comparison(status, answered)],
        };
        Ok(tested(false, status, None, outside, advice))
    }

    /// Sends the same sample to the local address.
    async fn compare(&self, opened: &Opened, public: &str, local: &str, answered: bool) -> Result<Vec<String>> {
        let behind = match self.attempt(opened, public, local).await? {
            Attempt::Let { activity, .. } => {
                self.clean_up(opened, activity).await?;
                return Ok(vec![if answered {
                    format!(
                        "The server at {local} takes the same sample: {public} leads somewhere else. Check the proxy's route and host name."
                    )
                } else {
                    format!(
                        "The server at {local} takes the same sample: the way from {public} to it is broken. Check DNS, firewall and proxy."
                    )
                }]);
            }
            Attempt::Unreachable(why) => {
                return Ok(vec![format!("{local} does not answer either ({why}). Is the server running? `gleaner serve` starts it.")]);
            }
            Attempt::Another => {
                return Ok(vec![format!("{local} leads to another program, too. Is the server running? `gleaner serve` starts it.")]);
            }
            Attempt::TurnedAway { status, said } => format!("{local} answered {status}{said}"),
        };
        if let Attempt::Let { activity, .. } = self.attempt(opened, local, local).await? {
            self.clean_up(opened, activity).await?;
            return Ok(vec![
                format!("The signature covers the URL, and the server takes its own to be {local}."),
                format!("Set PUBLIC_BASE_URL={public} for the server, or for this channel alone: --set public_url={public}"),
            ]);
        }
        Ok(vec![
            format!("Sent straight to the server it is refused too: {behind}."),
            format!(
                "If signatures of this sender cover the URL, set PUBLIC_BASE_URL={public} for the server, or public_url for this channel."
            ),
            format!("The recorded reason: gleaner channels refusals {}", opened.channel.id),
        ])
    }

    /// Signs for one base URL and sends to another.
    async fn attempt(&self, opened: &Opened, signed_for: &str, sent_to: &str) -> Result<Attempt> {
        let sample = self.signed(opened, signed_for, &Message::default())?;
        // Keep what the provider appended to the URL it signed.
        let target = sample.url.strip_prefix(signed_for).unwrap_or(&sample.url).to_owned();
        Ok(match self.find_program(sent_to).await {
            Program::Ours => send(sample, &format!("{sent_to}{target}"), true).await,
            Program::Another => Attempt::Another,
            Program::None(why) => Attempt::Unreachable(why),
        })
    }

    fn signed(&self, opened: &Opened, base: &str, message: &Message<'_>) -> Result<Sample> {
        let channel = &opened.channel;
        let mistake = |why: String| Error::Mistakes(vec![format!("channel {:?} cannot be tested with a sample: {why}", channel.name)]);
        let provider = self.provider(&channel.provider_code).ok_or_else(|| mistake("its provider is not known".into()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
        provider.compose(channel, &url(base, opened.key()?), now, message).map_err(mistake)
    }

    /// Sends a message to the webhook endpoint at `base`, signed as the channel's provider signs; nothing marks it as a test. With
    /// `spoiled`, one sign is added after signing, and it is refused. Returns the status of the answer, or none if there was none.
    pub async fn demonstrate(&self, opened: &Opened, base: &str, message: &Message<'_>, spoiled: bool) -> Result<Option<u16>> {
        let mut sample = self.signed(opened, base, message)?;
        if spoiled {
            sample.body.push(b' ');
        }
        let to = sample.url.clone();
        Ok(match send(sample, &to, false).await {
            Attempt::Let { status, .. } | Attempt::TurnedAway { status, .. } => Some(status),
            Attempt::Another | Attempt::Unreachable(_) => None,
        })
    }

    /// The sample must not be processed by a worker, and must be recognizable as a sample.
    async fn clean_up(&self, opened: &Opened, activity: Option<Uuid>) -> Result<()> {
        let Some(id) = activity else { return Ok(()) };
        let client = self.client().await?;
        let marked = client
            .query_typed(
                "update public.activities set metadata = coalesce(metadata, '{}') || '{\"test\": true}'
                 where id = $1 and provider_id = $2 returning id",
                &[(&id, tokio_postgres::types::Type::UUID), (&opened.channel.id, tokio_postgres::types::Type::UUID)],
            )
            .await
            .map_err(database::Error::doing("mark the sample"))?;
        if !marked.is_empty() {
            let acts = Acts::of(&**client, "activities").await.map_err(not_cancelled)?;
            let why = Some("a sample sent by `gleaner channels test`");
            acts.cancel(&**client, &[id.to_string().as_str()], why).await.map_err(not_cancelled)?;
        }
        Ok(())
    }
}

fn not_cancelled(error: gleaner::Error) -> Error {
    match error {
        gleaner::Error::Database { act, source } => database::Error::Database { act, source }.into(),
        gleaner::Error::Connect(why) => database::Error::Connect(why).into(),
        other => database::Error::Other(other.to_string()).into(),
    }
}

/// An HTTP client that follows no redirects: the signature was made for this URL, so a server that redirects is not the webhook
/// endpoint.
pub(super) fn client(patience: Duration) -> reqwest::Result<reqwest::Client> {
    // The program may have installed one already; installing it twice is no error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(patience).no_proxy().build()
}

async fn send(sample: Sample, to: &str, marked: bool) -> Attempt {
    let client = match client(PATIENCE) {
        Ok(client) => client,
        Err(error) => return Attempt::Unreachable(plain(&error)),
    };
    let mut request = client.request(sample.method, to).headers(sample.headers).body(sample.body);
    if marked {
        request = request.header(MARK, "true");
    }
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => return Attempt::Unreachable(plain(&error)),
    };
    let status = answer.status();
    let header = answer.headers().get("x-activity-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let text = answer.text().await.unwrap_or_default();
    let said: Value = serde_json::from_str(&text).unwrap_or_default();
    if status.is_success() {
        let activity = header.or_else(|| said["id"].as_str().and_then(|id| id.parse().ok()));
        // A page that answers every request with success is not the webhook endpoint either.
        if activity.is_none() && !text.is_empty() && said.is_null() && !text.contains("<Response") {
            return Attempt::TurnedAway { status: status.as_u16(), said: " with an answer that the webhook endpoint never gives".into() };
        }
        return Attempt::Let { status: status.as_u16(), activity };
    }
    let said = said["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
    Attempt::TurnedAway { status: status.as_u16(), said }
}

/// The innermost reason, without the URL, because the URL contains the key.
pub(super) fn plain(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    if std::ptr::addr_eq(inner, error) { "the request could not be sent".into() } else { inner.to_string() }
}

fn advice_without_comparison(status: Option<u16>, answered: bool) -> String {
    match status {
        None if answered => "This address leads somewhere else. Check the proxy's route and host name, and that the server runs.".into(),
        None => "Is the server running, and does this address lead to it? `gleaner serve` starts it.".into(),
        Some(401) => "The signature covers the URL: is PUBLIC_BASE_URL of the server the address tested here?".into(),
        Some(404) => "This address leads somewhere else. Check the proxy's route, and a path prefix in PUBLIC_BASE_URL.".into(),
        Some(_) => "`gleaner channels refusals` lists rejected requests.".into(),
    }
}
