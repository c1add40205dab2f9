//! What is known of devices, in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{ClaimedRow, Node, Who};

/// A device that has been silent for this long is removed from memory. In the database it is offline.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(120);
/// Limits on the devices of one person and of all people, so that a client that invents names cannot fill the memory.
const MOST_OF_ONE: usize = 64;
const MOST_NODES: usize = 20_000;
/// The most rows held, over all devices.
const MOST_HELD: usize = 100_000;
/// The most rows of one device that are written to the database.
const MOST_TOLD: usize = 16;

#[derive(Debug)]
pub(super) struct Ledger {
    nodes: HashMap<Arc<Node>, Heard>,
    /// The number of devices per person.
    whose: HashMap<Who, usize>,
    /// By queue, then by key.
    held: HashMap<String, HashMap<String, Held>>,
    /// When rows in the database may have been silent for too long. None when all are offline.
    look_at: Option<Instant>,
}

impl Default for Ledger {
    /// Checks once the rows that earlier servers left.
    fn default() -> Self {
        Self { nodes: HashMap::new(), whose: HashMap::new(), held: HashMap::new(), look_at: Some(Instant::now()) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Heard {
    at: Instant,
    is_written: bool,
    done: u32,
}

#[derive(Debug)]
struct Held {
    node: Arc<Node>,
    lease: Option<i64>,
    activity: Option<Uuid>,
    since: Instant,
    until: Instant,
}

/// What is about to be written to the database.
#[derive(Debug)]
pub(super) struct News {
    pub rows: Vec<Value>,
    counts: Vec<(Arc<Node>, u32)>,
}

impl Ledger {
    pub(super) fn heard(&mut self, node: &Node, now: Instant) -> Option<Arc<Node>> {
        if let Some((node, _)) = self.nodes.get_key_value(node) {
            let node = Arc::clone(node);
            self.hear(&node, now, 0);
            return Some(node);
        }
        let many = self.whose.entry(node.who.clone()).or_default();
        if *many >= MOST_OF_ONE || self.nodes.len() >= MOST_NODES {
            return None;
        }
        *many += 1;
        let node = Arc::new(node.clone());
        self.nodes.insert(Arc::clone(&node), Heard { at: now, is_written: false, done: 0 });
        Some(node)
    }

    fn hear(&mut self, node: &Node, now: Instant, done: u32) {
        if let Some(heard) = self.nodes.get_mut(node) {
            *heard = Heard { at: now, is_written: false, done: heard.done.saturating_add(done) };
        }
    }

    pub(super) fn gave<'a>(&mut self, node: &Node, queue: &str, rows: impl Iterator<Item = ClaimedRow<'a>>, now: Instant) {
        let Some(node) = self.heard(node, now) else { return };
        let mut room = MOST_HELD.saturating_sub(self.held.values().map(HashMap::len).sum());
        for row in rows {
            if room == 0 {
                return;
            }
            room -= 1;
            let until = now.checked_add(row.lease_for).unwrap_or(now);
            let held = Held { node: Arc::clone(&node), lease: row.lease, activity: row.activity, since: now, until };
            match self.held.get_mut(queue) {
                Some(rows) => rows.insert(row.key.to_owned(), held),
                None => self.held.entry(queue.to_owned()).or_default().insert(row.key.to_owned(), held),
            };
        }
    }

    pub(super) fn kept(&mut self, queue: &str, key: &str, lease: i64, left: Duration, now: Instant) {
        let Some(held) = self.held.get_mut(queue).and_then(|rows| rows.get_mut(key)) else { return };
        if held.lease.is_some_and(|known| known != lease) {
            return;
        }
        held.until = now.checked_add(left).unwrap_or(held.until);
        let node = Arc::clone(&held.node);
        self.hear(&node, now, 0);
    }

    pub(super) fn ended<'a>(&mut self, queue: &str, rows: impl Iterator<Item = (&'a str, i64)>, completed: bool, now: Instant) {
        for (key, lease) in rows {
            let Some(known) = self.held.get_mut(queue) else { return };
            if known.get(key).is_none_or(|held| held.lease.is_some_and(|known| known != lease)) {
                continue;
            }
            if let Some(held) = known.remove(key) {
                self.hear(&held.node, now, u32::from(completed));
            }
        }
    }

    /// Schedules a check of the database at that time, unless an earlier one is scheduled.
    pub(super) fn look_by(&mut self, at: Instant) {
        self.look_at = Some(self.look_at.map_or(at, |known| known.min(at)));
    }

    /// What to write to the database now. None when it is up to date and no device has been silent for too long.
    pub(super) fn news(&mut self, now: Instant) -> Option<News> {
        self.held.retain(|_, rows| {
            rows.retain(|_, held| held.until > now);
            !rows.is_empty()
        });
        let mut given: HashMap<&Node, Vec<&Held>> = HashMap::new();
        for held in self.held.values().flat_map(HashMap::values) {
            given.entry(&held.node).or_default().push(held);
        }
        let mut news = News { rows: Vec::new(), counts: Vec::new() };
        for (node, heard) in self.nodes.iter().filter(|(_, heard)| !heard.is_written) {
            news.rows.push(row(node, *heard, given.remove(&**node).unwrap_or_default(), now));
            news.counts.push((Arc::clone(node), heard.done));
        }
        for (node, done) in &news.counts {
            if let Some(heard) = self.nodes.get_mut(node) {
                (heard.is_written, heard.done) = (true, heard.done - done);
            }
        }
        let whose = &mut self.whose;
        self.nodes.retain(|node, heard| {
            let stays = now.saturating_duration_since(heard.at) < FORGOTTEN_AFTER || !heard.is_written;
            if !stays && let Some(many) = whose.get_mut(&node.who) {
                *many -= 1;
            }
            stays
        });
        whose.retain(|_, many| *many > 0);
        let must_look = self.look_at.is_some_and(|at| at <= now);
        (must_look || !news.rows.is_empty()).then_some(news)
    }

    /// The database is up to date. `next` is the time until a row may have been silent for too long.
    pub(super) fn written(&mut self, next: Option<Duration>, now: Instant) {
        self.look_at = next.and_then(|next| now.checked_add(next));
    }

    /// The write failed. What is still in memory is written next time.
    pub(super) fn not_written(&mut self, news: News, now: Instant) {
        for (node, done) in news.counts {
            if let Some(heard) = self.nodes.get_mut(&node) {
                (heard.is_written, heard.done) = (false, heard.done.saturating_add(done));
            }
        }
        self.look_by(now);
    }
}

fn row(node: &Node, heard: Heard, mut held: Vec<&Held>, now: Instant) -> Value {
    held.sort_by_key(|held| std::cmp::Reverse(held.since));
    let activities: Vec<Uuid> = held.iter().filter_map(|held| held.activity).take(MOST_TOLD).collect();
    let (user, sales) = match node.who {
        Who::User(user) => (Some(user), None),
        Who::Sales(sales) => (None, Some(sales)),
    };
    json!({
        "user": user, "sales": sales, "app": node.named.app, "device": node.named.device,
        "ago": now.saturating_duration_since(heard.at).as_secs_f64(), "done": heard.done,
        "busy": held.iter().any(|held| held.activity.is_none()), "activities": activities,
    })
}
