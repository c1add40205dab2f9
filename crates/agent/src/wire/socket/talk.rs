//! The connection: opened, kept alive, and reopened.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use futures_util::{SinkExt as _, StreamExt as _};
use rand::Rng as _;
use reqwest::Upgraded;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{Channel, ChannelNotifier};
use crate::wire::frame::Frame;
use crate::wire::http::Http;

/// The timeout for connecting, and for the reply to a join.
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval of heartbeats, which the server requires as well.
const HEARTBEAT: Duration = Duration::from_secs(25);
/// After a lost connection the first retry is almost immediate. The delay grows with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LEAST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A refused channel is retried after this long, because the cause may have been fixed.
const REFUSED_FOR: Duration = Duration::from_secs(60);

type Stream = WebSocketStream<Upgraded>;

/// Keeps a connection for the requested channels until its task is aborted or no more channels can be requested.
pub(super) async fn keep(http: Arc<Http>, mut asked: mpsc::UnboundedReceiver<Channel>, notifier: ChannelNotifier) {
    let mut channels: HashMap<String, Channel> = HashMap::new();
    let mut pause = FIRST_PAUSE;
    loop {
        if channels.is_empty() {
            let Some(channel) = asked.recv().await else { return };
            channels.insert(channel.topic.clone(), channel);
        }
        let ended = match timeout(PATIENCE, open(&http)).await {
            Ok(Ok(stream)) => {
                pause = FIRST_PAUSE;
                Talk::new(&http, stream, &notifier).run(&mut channels, &mut asked).await
            }
            Ok(Err(reason)) => reason,
            Err(_) => "the connection took too long".to_owned(),
        };
        for channel in channels.values() {
            notifier.is_live(&channel.queue, false);
        }
        tracing::debug!(reason = ended, retry_ms = pause.as_millis() as u64, "nothing is pushed now; polling meanwhile");
        // All agents lose a restarted server at the same moment. The jitter keeps them from reconnecting at the same moment.
        tokio::time::sleep(about(pause)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A random delay of at most this long, and at least half of it.
fn about(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..1.0))
}

/// The WebSocket handshake through the HTTP client, with its certificates, proxies and timeouts.
async fn open(http: &Http) -> Result<Stream, String> {
    http.wait_until_welcome().await;
    let apikey: String = form_urlencoded::byte_serialize(http.credentials.key().as_bytes()).collect();
    let url = format!("{}/realtime/v1/websocket?apikey={apikey}&vsn=2.0.0", http.base);
    let key = generate_key();
    // No other header can be relied on, so none is used: each join carries its own token.
    let request = http.client.get(&url).header(CONNECTION, "Upgrade").header(UPGRADE, "websocket");
    let request = request.header(SEC_WEBSOCKET_VERSION, "13").header(SEC_WEBSOCKET_KEY, &key);
    // The URL contains the key, so the client's own error text is left out.
    let response = request.send().await.map_err(|error| error.without_url().to_string())?;
    http.heed(&response);
    if response.status() != 101 {
        return Err(format!("the server does not push: it answered {}", response.status()));
    }
    if response.headers().get(SEC_WEBSOCKET_ACCEPT).is_none_or(|accept| accept.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err("what answers is no WebSocket".into());
    }
    let upgraded = response.upgrade().await.map_err(|error| error.without_url().to_string())?;
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await)
}

/// The state of a channel.
#[derive(Debug)]
enum Stand {
    /// The join was sent with this reference, and must be answered by this time.
    Joining(String, Instant),
    /// Joined, but the table is not watched yet.
    Joined,
    Live,
    /// Refused or closed for now.
    Refused(Instant),
}

struct Talk<'a> {
    http: &'a Http,
    stream: Stream,
    notifier: &'a ChannelNotifier,
    stands: HashMap<String, Stand>,
    next: u64,
    /// The token that all channels have.
    token: String,
    /// How many channels were closed since the last heartbeat.
    closed: HashMap<String, u32>,
}

impl<'a> Talk<'a> {
    fn new(http: &'a Http, stream: Stream, notifier: &'a ChannelNotifier) -> Self {
        Self { http, stream, notifier, stands: HashMap::new(), next: 0, token: String::new(), closed: HashMap::new() }
    }

    /// Runs until the connection is lost. Returns the reason.
    async fn run(mut self, channels: &mut HashMap<String, Channel>, asked: &mut mpsc::UnboundedReceiver<Channel>) -> String {
        match self.talk(channels, asked).await {
            Ok(()) => "the server closed the connection".into(),
            Err(reason) => reason,
        }
    }

    async fn talk(&mut self, channels: &mut HashMap<String, Channel>, asked: &mut mpsc::UnboundedReceiver<Channel>) -> Result<(), String> {
        for channel in channels.values() {
            self.join(channel).await?;
        }
        let mut beat_at = Instant::now() + HEARTBEAT;
        let mut renewed_at = Instant::now();
        // The reference of a heartbeat, and the time by which it must be answered.
        let mut unanswered: Option<(String, Instant)> = None;
        loop {
            let dead_at = unanswered.as_ref().map_or(beat_at + HEARTBEAT, |(_, at)| *at);
            let renew_at = self.http.credentials.renew_at().await.map_or(beat_at + HEARTBEAT, Instant::from_std);
            let again_at = self.stands.values().filter_map(Stand::until).min().unwrap_or(beat_at + HEARTBEAT);
            tokio::select! {
                message = self.stream.next() => match message {
                    Some(Ok(Message::Text(text))) => {
                        let Some(frame) = Frame::decode(text.as_str()) else { continue };
                        if frame.topic == "phoenix" {
                            unanswered = unanswered.filter(|(reference, _)| frame.reference.as_ref() != Some(reference));
                        } else if let Some(channel) = channels.get(&frame.topic) {
                            self.hear(channel, &frame);
                        }
                    }
                    Some(Ok(Message::Close(_))) | None => return Ok(()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error.to_string()),
                },
                Some(channel) = asked.recv() => {
                    if channels.insert(channel.topic.clone(), channel.clone()).is_none() {
                        self.join(&channel).await?;
                    } else {
                        // A subscriber that has just started may have missed something before.
                        self.notifier.notify(&channel.queue);
                    }
                }
                () = sleep_until(beat_at) => {
                    beat_at = Instant::now() + HEARTBEAT;
                    self.closed.clear();
                    // Another process may have renewed the token that we share.
                    self.renew(channels).await?;
                    let reference = self.say(None, "phoenix", "heartbeat", json!({})).await?;
                    unanswered = unanswered.or(Some((reference, Instant::now() + PATIENCE)));
                }
                () = sleep_until(dead_at), if unanswered.is_some() => return Err("the connection is dead".into()),
                () = sleep_until(renew_at.max(renewed_at + LEAST_PAUSE)) => {
                    renewed_at = Instant::now();
                    self.renew(channels).await?;
                }
                () = sleep_until(again_at) => {
                    let now = Instant::now();
                    let due = |topic: &str| self.stands.get(topic).and_then(Stand::until).is_some_and(|until| until <= now);
                    let late: Vec<Channel> = channels.values().filter(|channel| due(&channel.topic)).cloned().collect();
                    for channel in late {
                        self.join(&channel).await?;
                    }
                }
            }
        }
    }

    async fn say(&mut self, join_ref: Option<String>, topic: &str, event: &str, payload: Value) -> Result<String, String> {
        self.next += 1;
        let reference = self.next.to_string();
        let join_ref = if event == "phx_join" { Some(reference.clone()) } else { join_ref };
        let frame = Frame { join_ref, reference: Some(reference.clone()), topic: topic.into(), event: event.into(), payload };
        let sent = timeout(PATIENCE, self.stream.send(Message::text(frame.encode()))).await;
        sent.map_err(|_| "the connection is stuck".to_owned())?.map_err(|error| error.to_string())?;
        Ok(reference)
    }

    async fn join(&mut self, channel: &Channel) -> Result<(), String> {
        // The current token may be why the channel was closed.
        if let Ok(token) = self.http.credentials.token().await {
            self.token = token;
        }
        let payload = json!({"config": channel.config, "access_token": self.token});
        let reference = self.say(None, &channel.topic, "phx_join", payload).await?;
        self.stands.insert(channel.topic.clone(), Stand::Joining(reference, Instant::now() + PATIENCE));
        Ok(())
    }

    /// Sends the channels a token that is newer than theirs.
    async fn renew(&mut self, channels: &HashMap<String, Channel>) -> Result<(), String> {
        let Ok(token) = self.http.credentials.token().await else { return Ok(()) };
        if token == self.token {
            return Ok(());
        }
        self.token = token;
        for topic in channels.keys() {
            let payload = json!({"access_token": self.token});
            self.say(None, topic, "access_token", payload).await?;
        }
        Ok(())
    }

    fn hear(&mut self, channel: &Channel, frame: &Frame) {
        let Some(stand) = self.stands.get(&channel.topic) else { return };
        match frame.event.as_str() {
            "phx_reply" => {
                let Stand::Joining(reference, _) = stand else { return };
                if frame.reference.as_ref() != Some(reference) {
                    return;
                }
                match frame.verdict() {
                    Err(reason) => self.refused(channel, &reason),
                    Ok(()) if channel.watches => self.stand(channel, Stand::Joined),
                    // A server that does not know our notification channel would confirm a subscription that it does not serve.
                    Ok(()) if frame.payload.pointer("/response/gleaner/queue").is_none() => {
                        self.refused(channel, "it sends no notifications of work")
                    }
                    Ok(()) => self.stand(channel, Stand::Live),
                }
            }
            "system" => match frame.verdict() {
                Ok(()) if frame.payload["extension"] == "postgres_changes" => self.stand(channel, Stand::Live),
                Ok(()) => {}
                // The table cannot be watched. Any other error is temporary, and the channel is closed next.
                Err(reason) if frame.payload["extension"] == "postgres_changes" => self.refused(channel, &reason),
                Err(reason) => tracing::debug!(queue = channel.queue, reason, "the channel is in trouble"),
            },
            "work" | "postgres_changes" => self.notifier.notify(&channel.queue),
            // The channel may come back at once. Messages sent meanwhile are lost, so the subscribers are notified to look for
            // work.
            "phx_error" | "phx_close" if !matches!(stand, Stand::Refused(_)) => {
                let times = self.closed.entry(channel.topic.clone()).or_default();
                let pause = (FIRST_PAUSE * 2_u32.saturating_pow(*times)).min(LONGEST_PAUSE);
                *times += 1;
                self.stand(channel, Stand::Refused(Instant::now() + about(pause)));
            }
            _ => {}
        }
    }

    fn refused(&mut self, channel: &Channel, reason: &str) {
        tracing::info!(queue = channel.queue, reason, "new work is not pushed here; polling");
        self.stand(channel, Stand::Refused(Instant::now() + about(REFUSED_FOR)));
    }

    fn stand(&mut self, channel: &Channel, stand: Stand) {
        match &stand {
            Stand::Live => self.notifier.is_live(&channel.queue, true),
            Stand::Refused(_) => {
                self.notifier.is_live(&channel.queue, false);
                self.notifier.notify(&channel.queue);
            }
            Stand::Joining(..) | Stand::Joined => {}
        }
        self.stands.insert(channel.topic.clone(), stand);
    }
}

impl Stand {
    /// When to retry.
    fn until(&self) -> Option<Instant> {
        match self {
            Self::Joining(_, until) | Self::Refused(until) => Some(*until),
            Self::Joined | Self::Live => None,
        }
    }
}
