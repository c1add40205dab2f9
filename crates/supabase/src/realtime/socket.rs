//! One connection: its joins, its heartbeat and its end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::ws::{Message, WebSocket};
use gleaner_http::Caller;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::frame::{self, Frame, Version, encode};
use super::hub::{Identity, Member};
use super::join::join;
use super::outbox::Outbox;
use super::rates::Pace;
use super::signal::Following;
use super::{Device, Holder, Realtime, Verify};
use crate::access::is_opaque;

/// Clients send a heartbeat every 25 seconds. One that is silent for this long is taken as gone.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// A socket that does not take a frame within this time is closed.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// How often an opaque key is verified again: a revoked one must not go on seeing changes.
const ASK_AFTER: Duration = Duration::from_secs(10);
/// The most bytes of presence metadata that a member may send.
const MOST_PRESENCE: usize = 64 * 1024;
/// The most joins of one socket.
const MOST_JOINS: usize = 100;

struct Joined {
    member: Arc<Member>,
    /// When its token expires or must be verified again.
    until: Option<Instant>,
    /// An opaque key, which does not contain its own expiry.
    opaque: Option<String>,
    /// Ends with the join.
    _following: Option<Following>,
}

impl Joined {
    fn new(realtime: &Realtime, member: Arc<Member>, holder: &Holder) -> Self {
        let following = Following::start(realtime.signals.as_ref(), realtime.hub.live(), &member);
        let mut joined = Self { member, until: None, opaque: None, _following: following };
        joined.is_held_by(holder);
        joined
    }

    fn is_held_by(&mut self, holder: &Holder) {
        self.opaque = is_opaque(&holder.token).then(|| holder.token.clone());
        self.until = if self.opaque.is_some() { Some(Instant::now() + ASK_AFTER) } else { expires(&holder.caller) };
    }
}

pub(super) async fn serve(
    realtime: Realtime,
    mut socket: WebSocket,
    version: Version,
    connection: Holder,
    device: Option<Device>,
    mut pace: Pace,
) {
    let (out, mut frames, end) = Outbox::new(realtime.hub.budget());
    let mut early = VecDeque::new();
    let mut joins: HashMap<String, Joined> = HashMap::new();
    let mut silent_at = Instant::now() + SILENT_FOR;
    loop {
        let expiry = joins.values().filter_map(|joined| joined.until).min();
        tokio::select! {
            received = next(&mut early, &mut socket) => {
                silent_at = Instant::now() + SILENT_FOR;
                let frame = match received {
                    Some(Ok(Message::Text(text))) => frame::decode(version, text.as_str()),
                    Some(Ok(Message::Binary(bytes))) => frame::decode_binary(&bytes),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                };
                // A frame that cannot be parsed is ignored, as Supabase does: one bad frame is no reason to lose all joins.
                if let Some(frame) = frame {
                    if frame.event == "broadcast" && let Err(reason) = pace.allows(&frame.payload) {
                        refuse(&out, version, &frame, reason);
                        continue;
                    }
                    let handled = handle(&realtime, frame, version, &out, &connection, &mut joins);
                    // What a client asked for is dropped when it hangs up, and does not wait for the database to answer.
                    tokio::select! {
                        () = handled => {}
                        () = hung_up(&mut socket, &mut early) => break,
                    }
                    // Any frame counts, because clients send a heartbeat anyway.
                    if let (Some(devices), Some(device)) = (&realtime.devices, &device) {
                        joins.values().any(|joined| devices.connected(device, &joined.member.who().caller));
                    }
                }
            }
            Some(text) = frames.recv() => {
                let sent = tokio::time::timeout(SEND_WITHIN, socket.send(Message::Text(text))).await;
                if !matches!(sent, Ok(Ok(()))) {
                    break;
                }
            }
            why = end.reached() => {
                tracing::info!(why, "a socket was cut off");
                break;
            }
            () = tokio::time::sleep_until(silent_at) => break,
            () = at(expiry) => expire(&realtime, &mut joins).await,
        }
    }
    for joined in joins.values() {
        realtime.hub.leave(&joined.member);
    }
}

/// The most frames a client may send before the earlier ones are handled.
const MOST_EARLY: usize = 64;

async fn next(early: &mut VecDeque<Message>, socket: &mut WebSocket) -> Option<Result<Message, axum::Error>> {
    match early.pop_front() {
        Some(message) => Some(Ok(message)),
        None => socket.recv().await,
    }
}

/// Returns when the client is gone. Frames that come meanwhile are kept for later; with too many of them no more is read.
async fn hung_up(socket: &mut WebSocket, early: &mut VecDeque<Message>) {
    while early.len() < MOST_EARLY {
        match socket.recv().await {
            Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            Some(Ok(message)) => early.push_back(message),
        }
    }
    std::future::pending().await
}

fn refuse(out: &Outbox, version: Version, frame: &Frame, reason: &str) {
    let payload = json!({"status": "error", "response": {"reason": reason}}).to_string();
    out.push(encode(version, frame.join_ref.as_deref(), frame.reference.as_deref(), &frame.topic, "phx_reply", &payload));
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn handle(
    realtime: &Realtime,
    frame: Frame,
    version: Version,
    out: &Outbox,
    connection: &Holder,
    joins: &mut HashMap<String, Joined>,
) {
    let reply = |payload: &Value| {
        out.push(encode(version, frame.join_ref.as_deref(), frame.reference.as_deref(), &frame.topic, "phx_reply", &payload.to_string()));
    };
    let ok = || reply(&json!({"status": "ok", "response": {}}));
    match frame.event.as_str() {
        "heartbeat" if frame.topic == "phoenix" => ok(),
        "phx_join" => {
            // A second join of a topic replaces the first.
            if let Some(before) = joins.remove(&frame.topic) {
                realtime.hub.leave(&before.member);
            }
            if joins.len() >= MOST_JOINS {
                return reply(&json!({"status": "error", "response": {"reason": "TooManyChannels"}}));
            }
            if let Some((member, holder)) = join(realtime, &frame, version, out, connection).await {
                joins.insert(frame.topic, Joined::new(realtime, member, &holder));
            }
        }
        event => {
            let Some(joined) = joins.get_mut(&frame.topic) else {
                return reply(&json!({"status": "error", "response": {"reason": "unmatched topic"}}));
            };
            let member = joined.member.clone();
            match event {
                "phx_leave" => {
                    joins.remove(&frame.topic);
                    realtime.hub.leave(&member);
                    ok();
                    let join_ref = member.join_ref.as_deref();
                    out.push(encode(version, join_ref, join_ref, &frame.topic, "phx_close", "{}"));
                }
                "access_token" => renew(&realtime.verify, joined, &frame.payload).await,
                "broadcast" => {
                    realtime.hub.broadcast(&member, &frame.payload);
                    // Only a client that wants an acknowledgement sends a reference.
                    if frame.reference.is_some() {
                        ok();
                    }
                }
                "presence" => {
                    match frame.payload.get("event").and_then(Value::as_str) {
                        Some("track") => {
                            let says = frame.payload.get("payload").and_then(Value::as_object).cloned().unwrap_or_default();
                            if Value::from(says.clone()).to_string().len() > MOST_PRESENCE {
                                return reply(&json!({"status": "error", "response": {"reason": "what is tracked is too large"}}));
                            }
                            realtime.hub.track(&member, &says);
                        }
                        Some("untrack") => realtime.hub.untrack(&member),
                        _ => {}
                    }
                    ok();
                }
                _ => {}
            }
        }
    }
}

/// Takes a renewed token. There is no reply. A bad token is ignored, and the old one expires at its own time.
async fn renew(verify: &Verify, joined: &mut Joined, payload: &Value) {
    let Some(token) = payload.get("access_token").and_then(Value::as_str) else { return };
    if let Ok(caller) = verify(token.to_owned()).await {
        let holder = Holder { token: token.to_owned(), caller };
        joined.is_held_by(&holder);
        joined.member.becomes(Identity::new(holder.caller));
    }
}

fn expires(caller: &Caller) -> Option<Instant> {
    let Caller::Token { claims, .. } = caller else { return None };
    let at = claims.get("exp").and_then(Value::as_u64)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    Instant::now().checked_add(Duration::from_secs(at.saturating_sub(now)))
}

async fn expire(realtime: &Realtime, joins: &mut HashMap<String, Joined>) {
    let now = Instant::now();
    let mut ended = Vec::new();
    for (topic, joined) in joins.iter_mut().filter(|(_, joined)| joined.until.is_some_and(|until| until <= now)) {
        if let Some(token) = joined.opaque.clone() {
            match (realtime.verify)(token.clone()).await {
                Ok(caller) => {
                    joined.is_held_by(&Holder { token, caller });
                    continue;
                }
                // The key cannot be verified now, but the rows it may see cannot be read now either.
                Err(refused) if refused.status == StatusCode::SERVICE_UNAVAILABLE => {
                    joined.until = Some(now + ASK_AFTER);
                    continue;
                }
                Err(_) => {}
            }
        }
        ended.push(topic.clone());
    }
    for topic in ended {
        let Some(joined) = joins.remove(&topic) else { continue };
        realtime.hub.leave(&joined.member);
        let name = topic.strip_prefix("realtime:").unwrap_or_default();
        let system = json!({"extension": "system", "status": "error", "message": "Token has expired", "channel": name});
        joined.member.send("system", &system.to_string());
        joined.member.send("phx_close", "{}");
    }
}
