//! Which clients listen to what. Everything here is in memory and short: no lock is held across an await.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::ws::Utf8Bytes;
use gleaner_http::Caller;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::feed::{Change, Kind};
use super::filter::Condition;
use super::frame::{Version, encode};
use super::outbox::{Budget, Outbox};
use super::signal::Signal;

/// One join of one socket.
#[derive(Debug)]
pub(super) struct Member {
    pub id: u64,
    pub topic: String,
    pub join_ref: Option<String>,
    pub version: Version,
    pub bindings: Vec<Binding>,
    pub hears_itself: bool,
    pub presence_key: String,
    /// The signal that the member follows.
    pub signal: Option<Signal>,
    pub out: Outbox,
    /// The rows that it was shown where row-level security decides.
    pub shown: Shown,
    who: Mutex<Arc<Identity>>,
}

/// A caller, and a text that is the same for callers that see the same.
#[derive(Debug)]
pub(super) struct Identity {
    pub caller: Caller,
    pub key: String,
}

impl Identity {
    /// Without the claims that change with every renewal of a token: policies do not get to read them here, so that all sockets of
    /// one sign-in are served by one query.
    pub(super) fn new(caller: Caller) -> Self {
        match caller {
            Caller::Ourselves => Self { caller, key: String::new() },
            Caller::Token { role, mut claims } => {
                for name in ["exp", "iat", "nbf", "jti", "amr"] {
                    claims.remove(name);
                }
                let key = format!("{}{}", role.name(), Value::Object(claims.clone()));
                Self { caller: Caller::Token { role, claims }, key }
            }
        }
    }
}

/// The rows that a member was shown last, by a hash of their keys. When one of them is deleted, the member is informed; the key of a row
/// that it could not see is not for it.
#[derive(Debug, Default)]
pub(super) struct Shown(Mutex<Keys>);

#[derive(Debug, Default)]
struct Keys {
    known: HashSet<u64>,
    /// Oldest first. May have keys that were forgotten since.
    order: VecDeque<u64>,
}

/// The most rows a member is informed of when they are deleted. Memory is used per member.
const MOST_SHOWN: usize = 1024;

impl Shown {
    pub(super) fn remember(&self, key: u64) {
        let mut keys = self.0.lock().expect("no panic holds it");
        if keys.known.insert(key) {
            keys.order.push_back(key);
        }
        while keys.order.len() > MOST_SHOWN {
            if let Some(oldest) = keys.order.pop_front() {
                keys.known.remove(&oldest);
            }
        }
    }

    /// Whether it was known.
    pub(super) fn forget(&self, key: u64) -> bool {
        self.0.lock().expect("no panic holds it").known.remove(&key)
    }
}

/// What one entry of a join asks for.
#[derive(Debug, Clone)]
pub(super) struct Binding {
    pub id: u64,
    /// None for every kind.
    pub kind: Option<Kind>,
    pub schema: String,
    /// None for every published table of the schema.
    pub table: Option<String>,
    pub conditions: Vec<Condition>,
}

impl Binding {
    fn wants(&self, change: &Change) -> bool {
        self.kind.is_none_or(|kind| kind == change.kind)
            && self.schema == change.table.schema
            && self.table.as_ref().is_none_or(|table| *table == change.table.name)
            && self.conditions.iter().all(|condition| condition.holds(&change.table, change))
    }
}

impl Member {
    pub(super) fn new(topic: String, join_ref: Option<String>, version: Version, out: Outbox, who: Identity) -> Self {
        Self {
            id: 0,
            topic,
            join_ref,
            version,
            bindings: Vec::new(),
            hears_itself: false,
            presence_key: String::new(),
            signal: None,
            out,
            shown: Shown::default(),
            who: Mutex::new(Arc::new(who)),
        }
    }

    pub(super) fn who(&self) -> Arc<Identity> {
        self.who.lock().expect("no panic holds it").clone()
    }

    pub(super) fn becomes(&self, who: Identity) {
        *self.who.lock().expect("no panic holds it") = Arc::new(who);
    }

    /// The ids of this join's bindings that the change concerns.
    pub(super) fn wants(&self, change: &Change) -> Vec<u64> {
        self.bindings.iter().filter(|binding| binding.wants(change)).map(|binding| binding.id).collect()
    }

    /// Sends a message on the topic that is not a reply.
    pub(super) fn send(&self, event: &str, payload: &str) {
        self.out.push(encode(self.version, self.join_ref.as_deref(), None, &self.topic, event, payload));
    }

    pub(super) fn reply(&self, reference: Option<&str>, payload: &Value) {
        self.out.push(encode(self.version, self.join_ref.as_deref(), reference, &self.topic, "phx_reply", &payload.to_string()));
    }
}

#[derive(Debug)]
pub(super) struct Hub {
    rooms: Mutex<Rooms>,
    next_id: AtomicU64,
    /// Set while the feed runs: the number of the last request for the feed that it has served.
    live: watch::Sender<Option<u64>>,
    asks: watch::Sender<u64>,
    budget: Budget,
}

/// A message for all members of a topic: one buffer for each serialisation, however many sockets it waits for.
struct Shared {
    one: Utf8Bytes,
    two: Utf8Bytes,
}

impl Shared {
    fn new(topic: &str, event: &str, payload: &str) -> Self {
        let encoded = |version| Utf8Bytes::from(encode(version, None, None, topic, event, payload));
        Self { one: encoded(Version::One), two: encoded(Version::Two) }
    }

    fn send(&self, member: &Member) {
        member.out.push(match member.version {
            Version::One => self.one.clone(),
            Version::Two => self.two.clone(),
        });
    }
}

#[derive(Debug, Default)]
struct Rooms {
    members: HashMap<u64, Arc<Member>>,
    by_topic: HashMap<String, HashSet<u64>>,
    by_table: HashMap<(String, String), HashSet<u64>>,
    by_schema: HashMap<String, HashSet<u64>>,
    /// Per topic and key, the members that are present, with the metadata each one sent.
    present: HashMap<String, BTreeMap<String, BTreeMap<u64, Value>>>,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            rooms: Mutex::default(),
            next_id: AtomicU64::new(1),
            live: watch::Sender::new(None),
            asks: watch::Sender::new(0),
            budget: Budget::default(),
        }
    }
}

impl Hub {
    /// A unique number. Never zero, which clients take for no id.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().expect("no panic holds it")
    }

    pub(super) fn count(&self) -> usize {
        self.rooms().members.len()
    }

    /// Waits until the feed runs and sees everything that is published by now.
    pub(super) async fn ready(&self) {
        let mut ask = 0;
        self.asks.send_modify(|asks| {
            *asks += 1;
            ask = *asks;
        });
        // The sender lives as long as `self`.
        let _ = self.live.subscribe().wait_for(|live| live.is_some_and(|asks| asks >= ask)).await;
    }

    /// The number of requests for the feed so far.
    pub(super) fn asks(&self) -> watch::Receiver<u64> {
        self.asks.subscribe()
    }

    /// Whether the feed runs by triggers and so sees only tables that have them.
    pub(super) fn is_by_triggers(&self) -> bool {
        self.live.borrow().is_some_and(|asks| asks < u64::MAX)
    }

    /// Whether the feed runs, as a receiver that notifies of changes.
    pub(super) fn live(&self) -> watch::Receiver<Option<u64>> {
        self.live.subscribe()
    }

    pub(super) fn set_live(&self, asks: Option<u64>) {
        self.live.send_replace(asks);
    }

    /// Whether any member follows tables.
    pub(super) fn has_followers(&self) -> bool {
        let rooms = self.rooms();
        !rooms.by_table.is_empty() || !rooms.by_schema.is_empty()
    }

    /// Adds a member and sends its reply under one lock, so that no change can come between the two. A member that follows tables
    /// is returned as an error while the feed is down: a gap is reported to current members only, so one that joined during it
    /// would never learn of it.
    pub(super) fn join(&self, mut member: Member, reply: impl FnOnce(&Member)) -> Result<Arc<Member>, Box<Member>> {
        member.id = self.next_id();
        let mut rooms = self.rooms();
        // Checked with the rooms locked: a failing feed is first marked as down, and only then are the members sent an error.
        if !member.bindings.is_empty() && self.live.borrow().is_none() {
            return Err(Box::new(member));
        }
        let member = Arc::new(member);
        reply(&member);
        rooms.by_topic.entry(member.topic.clone()).or_default().insert(member.id);
        for binding in &member.bindings {
            match &binding.table {
                Some(table) => rooms.by_table.entry((binding.schema.clone(), table.clone())).or_default().insert(member.id),
                None => rooms.by_schema.entry(binding.schema.clone()).or_default().insert(member.id),
            };
        }
        rooms.members.insert(member.id, member.clone());
        Ok(member)
    }

    pub(super) fn leave(&self, member: &Member) {
        self.untrack(member);
        let mut rooms = self.rooms();
        rooms.members.remove(&member.id);
        let rooms = &mut *rooms;
        forget(&mut rooms.by_topic, &member.topic, member.id);
        for binding in &member.bindings {
            match &binding.table {
                Some(table) => forget(&mut rooms.by_table, &(binding.schema.clone(), table.clone()), member.id),
                None => forget(&mut rooms.by_schema, &binding.schema, member.id),
            }
        }
    }

    /// All members that a change of this table may concern.
    pub(super) fn followers(&self, schema: &str, table: &str) -> Vec<Arc<Member>> {
        let rooms = self.rooms();
        let by_table = rooms.by_table.get(&(schema.to_owned(), table.to_owned()));
        let by_schema = rooms.by_schema.get(schema);
        let ids: HashSet<u64> = by_table.into_iter().chain(by_schema).flatten().copied().collect();
        let mut members: Vec<_> = ids.into_iter().filter_map(|id| rooms.members.get(&id).cloned()).collect();
        members.sort_unstable_by_key(|member| member.id);
        members
    }

    /// Changes may have been missed. These members get an error, on which clients join again and read the tables themselves.
    pub(super) fn fail(&self, members: &[Arc<Member>]) {
        for member in members {
            member.send("phx_error", "{}");
            self.leave(member);
        }
    }

    /// All members that follow tables.
    pub(super) fn all_followers(&self) -> Vec<Arc<Member>> {
        self.rooms().members.values().filter(|member| !member.bindings.is_empty()).cloned().collect()
    }

    /// All members whose token belongs to a user, by user.
    pub(super) fn people(&self) -> HashMap<Uuid, Vec<Arc<Member>>> {
        let mut people: HashMap<Uuid, Vec<Arc<Member>>> = HashMap::new();
        for member in self.rooms().members.values() {
            if let Some(person) = member.who().caller.person() {
                people.entry(person).or_default().push(member.clone());
            }
        }
        people
    }

    /// A broadcast of a program that has not joined.
    pub(super) fn announce(&self, topic: &str, payload: &Value) {
        let shared = Shared::new(topic, "broadcast", &payload.to_string());
        self.on(topic).iter().for_each(|member| shared.send(member));
    }

    pub(super) fn broadcast(&self, from: &Member, payload: &Value) {
        let shared = Shared::new(&from.topic, "broadcast", &payload.to_string());
        for member in self.on(&from.topic) {
            if member.id != from.id || from.hears_itself {
                shared.send(&member);
            }
        }
    }

    /// What all sockets may keep waiting together.
    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    fn on(&self, topic: &str) -> Vec<Arc<Member>> {
        let rooms = self.rooms();
        rooms.by_topic.get(topic).into_iter().flatten().filter_map(|id| rooms.members.get(id).cloned()).collect()
    }

    /// Who is present, in the form sent to a new member.
    pub(super) fn presence(&self, topic: &str) -> Value {
        let rooms = self.rooms();
        let keys = rooms.present.get(topic).into_iter().flatten();
        Value::Object(keys.map(|(key, metas)| (key.clone(), json!({"metas": metas.values().collect::<Vec<_>>()}))).collect())
    }

    pub(super) fn track(&self, member: &Member, says: &Map<String, Value>) {
        let mut meta = says.clone();
        meta.insert("phx_ref".into(), json!(self.next_id().to_string()));
        let meta = Value::Object(meta);
        let before = {
            let mut rooms = self.rooms();
            let topic = rooms.present.entry(member.topic.clone()).or_default();
            topic.entry(member.presence_key.clone()).or_default().insert(member.id, meta.clone())
        };
        self.tell_presence(&member.topic, &member.presence_key, Some(meta), before);
    }

    pub(super) fn untrack(&self, member: &Member) {
        let before = {
            let mut rooms = self.rooms();
            let Some(topic) = rooms.present.get_mut(&member.topic) else { return };
            let Some(metas) = topic.get_mut(&member.presence_key) else { return };
            let before = metas.remove(&member.id);
            if metas.is_empty() {
                topic.remove(&member.presence_key);
            }
            if topic.is_empty() {
                rooms.present.remove(&member.topic);
            }
            before
        };
        if before.is_some() {
            self.tell_presence(&member.topic, &member.presence_key, None, before);
        }
    }

    fn tell_presence(&self, topic: &str, key: &str, joined: Option<Value>, left: Option<Value>) {
        let side = |meta: Option<Value>| meta.map_or_else(|| json!({}), |meta| json!({ key: {"metas": [meta]} }));
        let shared = Shared::new(topic, "presence_diff", &json!({"joins": side(joined), "leaves": side(left)}).to_string());
        for member in self.on(topic) {
            shared.send(&member);
        }
    }
}

fn forget<K: std::hash::Hash + Eq>(index: &mut HashMap<K, HashSet<u64>>, key: &K, id: u64) {
    if let Some(ids) = index.get_mut(key) {
        ids.remove(&id);
        if ids.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follower(out: &Outbox) -> Member {
        let mut member = Member::new("realtime:x".into(), None, Version::Two, out.clone(), Identity::new(Caller::Ourselves));
        member.bindings.push(Binding { id: 1, kind: None, schema: "public".into(), table: None, conditions: Vec::new() });
        member
    }

    #[test]
    fn no_subscription_begins_while_the_feed_is_down() {
        let hub = Hub::default();
        let (out, _frames, _end) = Outbox::new(hub.budget());
        let member = hub.join(follower(&out), |_| panic!("nothing is promised")).expect_err("the feed is down");
        assert_eq!(hub.count(), 0);
        hub.set_live(Some(0));
        let joined = hub.join(*member, |_| {}).expect("the feed is up");
        assert_eq!((hub.count(), hub.all_followers().len()), (1, 1));
        hub.leave(&joined);
        hub.set_live(None);
        let mut listener = follower(&out);
        listener.bindings.clear();
        hub.join(listener, |_| {}).expect("broadcasts need no feed");
    }
}
