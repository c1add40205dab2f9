//! Webhooks: `POST /functions/v1/ingest-activity?key=…`.
//!
//! The steps, in this order: key, channel, client, rate limit, body (limited while it streams), signature over the exact
//! bytes, parsing, commit, response. A failure is reported to the sender in the form its provider needs, and to the
//! operator with the real reason.
//!
//! # Layout
//!
//! - [`routes`] lists the routes; [`target`], [`client`], [`limits`], [`body`]: the checks before anything is trusted; [`rejection`] has every reason for a
//!   refusal.
//! - [`raw`], [`submit`], [`committer`]: store the events durably; [`contacts`] runs after that.
//! - [`refusals`], [`prune`]: what the operator reads, and how long it is kept; [`replay`] processes stored requests again.

mod body;
mod client;
mod clock;
mod committer;
mod contacts;
mod limits;
mod prune;
mod raw;
mod refusals;
mod rejection;
pub mod replay;
mod routes;
mod settings;
mod shared;
mod submit;
mod target;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderMap, StatusCode, request};
use axum::response::Response;
use gleaner_ingest::provider::{Inbound, Outcome, Provider, Verified};
use gleaner_ingest::refusal::Why;
use gleaner_ingest::{Answer, Channel, Refusal};

use self::raw::Head;
use self::refusals::Refused;
use self::rejection::Rejection;
use self::target::Target;
use crate::channels;

pub(crate) use self::committer::{Committed, NotStored};
pub(crate) use self::submit::{Arrival, prepare};

pub use self::client::address as client_address;
pub use self::clock::Clock;
pub use self::committer::{Committer, How};
pub use self::contacts::Newcomers;
pub use self::prune::{forget_files, keep_pruning, prune};
pub use self::refusals::keep_writing;
pub use self::routes::routes;
pub use self::settings::{FurtherPath, Limits, Raw, Settings};
pub use self::shared::{Parts, SigningKeys, Webhooks};

/// A request being processed, and what is known about it so far. What is not known when it is refused is not recorded.
#[derive(Debug)]
struct Visit<'a> {
    state: &'a Webhooks,
    parts: &'a request::Parts,
    target: &'a str,
    peer: SocketAddr,
    client: Option<IpAddr>,
    channel: Option<Arc<Channel>>,
    provider: Option<&'static dyn Provider>,
}

/// Answers a webhook request. `key` replaces `?key=` on paths that have none.
async fn receive(state: Arc<Webhooks>, key: Option<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)), |info| info.0);
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let client = client::address(peer, &parts.headers, &state.settings.trusted_proxies);
    if let Some(proof) = proof(&state, &parts, target) {
        body::discard(body);
        return respond(Answer::text(StatusCode::OK, "", "").with(channels::PROOF_HEADER, proof));
    }
    let mut visit = Visit { state: &state, parts: &parts, target, peer, client, channel: None, provider: None };
    let answer = match visit.take(key, body).await {
        Ok(answer) => answer,
        Err(rejection) => visit.reject(rejection),
    };
    tracing::debug!(method = %parts.method, target = %Target(target), status = answer.status.as_u16(), "answered");
    respond(answer)
}

/// The answer to the question whether this is the server that a key belongs to. It is asked before the key is sent, so without one.
fn proof(state: &Webhooks, parts: &request::Parts, target: &str) -> Option<String> {
    let challenge = parts.headers.get(channels::CHALLENGE_HEADER)?.to_str().ok()?;
    if Target(target).key().is_some() { None } else { state.channels.prove(challenge) }
}

impl Visit<'_> {
    async fn take(&mut self, key: Option<String>, body: Body) -> Result<Answer, Rejection> {
        let (channel, provider) = match self.find(key).await {
            Ok(found) => found,
            Err(rejection) => {
                body::discard(body);
                return Err(rejection);
            }
        };
        let state = self.state;
        let pass = state.limits.enter(Some(channel.id), self.counted()).await.map_err(|retry_after| Rejection::TooMany { retry_after })?;
        if let Some(encoding) = encoding(&self.parts.headers) {
            body::discard(body);
            let why = format!("Content-Encoding {encoding}; send the body without one");
            return Err(Refusal::Unsupported(why).into());
        }
        let limit = provider.body_limit(&channel);
        let body = body::read(body, &self.parts.headers, limit, &state.memory, &state.settings.limits).await?;
        let base = state.public_base(&channel);
        let request = gleaner_ingest::Request {
            method: &self.parts.method,
            target: self.target,
            headers: &self.parts.headers,
            body: &body.bytes,
            client: self.client,
            now: state.settings.clock.now(),
            public_base: &base,
        };
        let channel = state.keys.with_keys(channel, &request).await;
        let verified = provider.verify(&channel, &request)?;
        drop(pass);
        state.limits.admit(channel.id).map_err(|retry_after| Rejection::Ceiling { retry_after })?;
        if let Some(warning) = &verified.warning {
            self.note("warning", warning);
        }
        match provider.normalise(&channel, &request) {
            Ok(inbound) => self.store(&channel, provider, verified, inbound, &body.bytes).await,
            Err(refusal) => {
                // Authentic but not understood. It is stored anyway, so that it can be replayed once we understand it.
                self.commit(&channel, provider, Arrival { once: verified.once, said: verified.said, ..Arrival::default() }, &body.bytes)
                    .await?;
                Err(refusal.into())
            }
        }
    }

    /// Finds the channel of the request. The body is not read before the channel is known.
    async fn find(&mut self, key: Option<String>) -> Result<(Arc<Channel>, &'static dyn Provider), Rejection> {
        let key = Target(self.target).key().or(key).ok_or(Rejection::NoKey)?;
        let pass = self.state.limits.enter(None, self.counted()).await.map_err(|retry_after| Rejection::TooMany { retry_after })?;
        let looked_up = tokio::time::timeout(self.state.settings.within, self.state.channels.by_key(&key)).await;
        let found = looked_up.map_err(|_| Rejection::Unavailable("look up the channel: no answer in time".to_owned()))?;
        let found = found.map_err(|error| Rejection::Unavailable(format!("look up the channel: {error}")))?;
        drop(pass);
        let channel = found.ok_or(Rejection::UnknownKey)?;
        self.channel = Some(Arc::clone(&channel));
        let provider = self
            .state
            .channels
            .provider(&channel.provider_code)
            .ok_or_else(|| Rejection::UnknownProvider(channel.provider_code.clone()))?;
        self.provider = Some(provider);
        if channel.is_active { Ok((channel, provider)) } else { Err(Rejection::Paused) }
    }

    async fn store(
        &self,
        channel: &Channel,
        provider: &'static dyn Provider,
        verified: Verified,
        inbound: Inbound,
        body: &bytes::Bytes,
    ) -> Result<Answer, Rejection> {
        let arrival = match inbound {
            Inbound::Reply(answer) => return Ok(answer),
            Inbound::Fetch => {
                // Only a hint: if it is lost, the regular poll finds the message.
                let _ = self.state.fetches.try_send(channel.id);
                return Ok(provider.acknowledge(&Outcome { stored: &[] }));
            }
            Inbound::Nothing { remember, warning } => {
                if let Some(warning) = &warning {
                    self.note("notice", warning);
                }
                Arrival { remember, once: verified.once, said: verified.said, ..Arrival::default() }
            }
            Inbound::Events { events, remember } => Arrival { events, remember, once: verified.once, said: verified.said, raw: None },
        };
        let stored = self.commit(channel, provider, arrival, body).await?;
        // No contact is created for the sender of a sample.
        let is_sample = self.parts.headers.contains_key(channels::TEST_MARK);
        if channel.auto_create_contacts && !is_sample {
            self.state.newcomers.add(stored.iter().filter(|one| one.fresh).map(|one| one.id).collect());
        }
        Ok(provider.acknowledge(&Outcome { stored: &stored }))
    }

    /// Makes the request durable. Files are written first.
    async fn commit(
        &self,
        channel: &Channel,
        provider: &dyn Provider,
        mut arrival: Arrival,
        body: &bytes::Bytes,
    ) -> Result<Vec<gleaner_ingest::Stored>, Rejection> {
        let Webhooks { files, committer, settings, .. } = self.state;
        let unwritten = |error: crate::files::Error| Rejection::Unavailable(format!("keep the files: {error}"));
        if !settings.raw.keep.is_zero() {
            let head = Head { method: &self.parts.method, target: self.target, headers: &self.parts.headers };
            arrival.raw = Some(raw::keep(files, channel, provider, head, body).await.map_err(unwritten)?);
        }
        let prepared = submit::prepare(files, channel, arrival).await.map_err(unwritten)?;
        let committed = committer.commit(prepared.submission).await.map_err(|error| match error {
            NotStored::Data { code } if code.starts_with("23") => {
                Rejection::Refused(Refusal::Unusable(format!("a rule of the database ({code})")))
            }
            NotStored::Data { code } => Rejection::Refused(Refusal::Malformed(format!("the database cannot hold it ({code})"))),
            NotStored::Away(text) => Rejection::Unavailable(text),
        })?;
        prepared.written.tidy(files, &committed).await;
        match committed {
            Committed::Stored(stored) => Ok(stored),
            Committed::Nothing => Ok(Vec::new()),
            Committed::Replayed => Err(Refusal::from(Why::Replayed).into()),
            Committed::Closed => Err(Rejection::Paused),
        }
    }

    /// The address that is counted: the client's, or that of a proxy that does not name the client.
    fn counted(&self) -> IpAddr {
        self.client.unwrap_or_else(|| self.peer.ip().to_canonical())
    }

    fn reject(&self, rejection: Rejection) -> Answer {
        let channel = self.channel.as_ref().map(|channel| channel.id);
        let detail = rejection.to_string();
        let (reason, status) = (rejection.word(), rejection.status().as_u16());
        self.state.refusals.record(Refused { channel, reason, status, client: self.client, detail });
        if rejection.is_suspicious()
            && let Err(retry_after) = self.state.limits.blame(channel, self.counted())
        {
            return Rejection::TooMany { retry_after }.answer(self.provider);
        }
        rejection.answer(self.provider)
    }

    /// Records what is to be said about a request that is accepted: a warning about how it was sent, or a notice that nothing came
    /// of it. The operator finds both among the refusals.
    fn note(&self, reason: &'static str, detail: &str) {
        let channel = self.channel.as_ref().map(|channel| channel.id);
        self.state.refusals.record(Refused { channel, reason, status: 200, client: self.client, detail: detail.to_owned() });
    }
}

/// A content encoding other than none. Signatures of some senders cover the body as it was before, of others after: no body is decoded.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(CONTENT_ENCODING).iter().map(|value| value.to_str().unwrap_or("that is not text").trim());
    let words = values.flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase());
    words.into_iter().find(|word| !word.is_empty() && word != "identity").map(|word| word.chars().take(40).collect())
}

fn respond(answer: Answer) -> Response {
    let mut response = Response::builder().status(answer.status);
    if !answer.content_type.is_empty() {
        response = response.header("content-type", answer.content_type);
    }
    for (name, value) in &answer.headers {
        response = response.header(*name, value);
    }
    response.body(Body::from(answer.body)).unwrap_or_else(|error| {
        tracing::error!(%error, "a provider's answer is no HTTP answer");
        let mut response = Response::new(Body::empty());
        *response.status_mut() = answer.status;
        response
    })
}
