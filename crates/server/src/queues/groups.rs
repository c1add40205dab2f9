//! Equal claims wait in one group, in the order in which they arrived.
//!
//! One task ([`super::poll`]) serves a group for as long as it contains claims. However many claims wait, only one task
//! queries the database.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use gleaner::notify::SharedListener;
use gleaner::queue::Claimed;
use gleaner::{Acts, Claim, Error, Pool};
use gleaner_http::Caller;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::empty_cache::{Empty, EmptyCache};
use super::key::Key;

/// The most claims in one statement.
pub(super) const MOST_TOGETHER: usize = 64;

/// The result of a claim. An error is shared by all claims of the same query.
pub(super) type Answer = Result<Claimed, Arc<Error>>;

/// All groups. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub pool: Pool,
    pub listener: Arc<SharedListener>,
    pub empty_cache: Arc<EmptyCache>,
    pub queries: AtomicU64,
    tickets: AtomicU64,
    groups: Mutex<HashMap<Key, Group>>,
}

/// What equal claims have in common: the same queue, the same caller and the same conditions.
#[derive(Debug, Clone)]
pub(super) struct Alike {
    pub key: Key,
    pub queue: String,
    pub caller: Caller,
    /// The queue's acts as the latest claim knows them. `gleaner attach` may change the queue while the group goes on.
    pub acts: Arc<Acts>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub alike: Alike,
    /// Claims that have not been in a query yet.
    pub new: BTreeMap<u64, Waiting>,
    /// Claims that a query found nothing for, and that still have time to wait.
    pub patient: BTreeMap<u64, Waiting>,
    /// The result of the last query that found nothing.
    pub empty: Option<Empty>,
    /// Notified when a new claim joins.
    pub came: Arc<Notify>,
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub pending: Pending,
    answer: oneshot::Sender<Answer>,
}

/// A claim, and what was known when it arrived.
#[derive(Debug)]
pub(super) struct Pending {
    pub claim: Claim,
    /// The number of notifications at that time. A query that began before the last of them proves nothing for this claim.
    pub heard: u64,
    pub until: Instant,
    /// The request may have been sent before. Even if the queue is known to be empty, the database is queried for the rows
    /// that were claimed for it.
    pub repeats: bool,
    /// A query would find nothing now: either the empty_cache says so, or the claim has already been in a query.
    pub known_empty: bool,
}

impl Waiting {
    pub(super) fn answer(self, answer: Answer) -> Result<(), Answer> {
        self.answer.send(answer)
    }
}

impl Group {
    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.patient.is_empty()
    }

    /// Takes out the claims for the next query: all new ones, and up to `patient` of the patient ones, oldest first. While
    /// the queue is known to be empty, no patient claim is taken, unless a query is needed anyway.
    pub(super) fn take(&mut self, known_empty: bool, patient: usize, most: usize) -> BTreeMap<u64, Waiting> {
        let queries = !known_empty || self.new.values().any(|waiting| !waiting.pending.repeats);
        let patient = if queries { self.patient.keys().take(patient).copied().collect() } else { Vec::new() };
        let mut tickets: Vec<u64> = patient.into_iter().chain(self.new.keys().take(most).copied()).collect();
        tickets.sort_unstable();
        tickets.truncate(most);
        let mut take = |ticket: u64| self.patient.remove(&ticket).or_else(|| self.new.remove(&ticket)).map(|waiting| (ticket, waiting));
        tickets.into_iter().filter_map(&mut take).collect()
    }

    /// Puts a claim into the group, unless its client has left. A claim with no time left joins the next query and gets its
    /// answer from it.
    pub(super) fn put(&mut self, ticket: u64, waiting: Waiting) {
        if waiting.answer.is_closed() {
            return;
        }
        let Pending { known_empty, repeats, until, .. } = waiting.pending;
        let is_patient = known_empty && !repeats && until > Instant::now();
        if is_patient { &mut self.patient } else { &mut self.new }.insert(ticket, waiting);
    }

    /// A query that began after `notifications` notifications found nothing. That is the answer for every claim that had seen no
    /// later notification. Claims with time left stay in the group.
    pub(super) fn nothing_found(&mut self, notifications: u64, empty: Empty) {
        self.empty = Some(empty);
        let now = Instant::now();
        for (ticket, waiting) in std::mem::take(&mut self.new) {
            if waiting.pending.heard > notifications || waiting.pending.repeats {
                self.new.insert(ticket, waiting);
            } else if waiting.pending.until > now {
                self.patient.insert(ticket, waiting);
            } else {
                // A client that has left needs no answer.
                let _ = waiting.answer(Ok(nothing(Some(empty))));
            }
        }
    }
}

fn nothing(empty: Option<Empty>) -> Claimed {
    Claimed { items: Vec::new(), next_due_in: empty.and_then(|empty| empty.next_due_in()) }
}

impl Groups {
    pub(super) fn new(pool: Pool, listener: Arc<SharedListener>, empty_cache: Arc<EmptyCache>) -> Self {
        let shared =
            Shared { pool, listener, empty_cache, queries: AtomicU64::new(0), tickets: AtomicU64::new(0), groups: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// How many statements claims have taken.
    pub(super) fn queries(&self) -> u64 {
        self.shared.queries.load(Ordering::Relaxed)
    }

    /// How many claims wait for a notification or for the next query.
    pub(super) fn waiting(&self) -> usize {
        self.lock().values().map(|group| group.patient.len()).sum()
    }

    /// How many groups there are, each with a task that serves it, and how many claims are in them.
    pub(super) fn size(&self) -> (usize, usize) {
        let groups = self.lock();
        (groups.len(), groups.values().map(|group| group.new.len() + group.patient.len()).sum())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Key, Group>> {
        self.shared.groups.lock().expect("no panic holds it")
    }

    /// Adds a claim to its group.
    pub(super) fn join(&self, alike: Alike, pending: Pending) -> WaitingClaim {
        let ticket = self.shared.tickets.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let mut groups = self.lock();
        let is_first = !groups.contains_key(&alike.key);
        let group = groups.entry(alike.key).or_insert_with(|| Group {
            alike: alike.clone(),
            new: BTreeMap::new(),
            patient: BTreeMap::new(),
            empty: None,
            came: Arc::default(),
        });
        group.alike.acts = alike.acts.clone();
        group.put(ticket, Waiting { pending, answer });
        group.came.notify_one();
        drop(groups);
        if is_first {
            // Runs in a task of its own: a client that disconnects must not cancel the other clients' claims.
            tokio::spawn(self.clone().serve(alike.clone()));
        }
        WaitingClaim { groups: self.clone(), alike, ticket, answered }
    }
}

/// A claim in its group. Dropping it takes it out of the group, and releases the rows that were claimed for it in the meantime.
#[derive(Debug)]
pub(super) struct WaitingClaim {
    groups: Groups,
    alike: Alike,
    ticket: u64,
    answered: oneshot::Receiver<Answer>,
}

impl WaitingClaim {
    pub(super) async fn answer(&mut self) -> Answer {
        (&mut self.answered).await.unwrap_or_else(|_| Err(Arc::new(Error::Other("the claim was given up".into()))))
    }

    /// Leaves when the time to wait is over. The answer is empty, unless a query for this claim is running or about to run.
    pub(super) async fn leave(mut self) -> Answer {
        let left = self.groups.lock().get_mut(&self.alike.key).and_then(|group| group.patient.remove(&self.ticket).map(|_| group.empty));
        match left {
            Some(empty) => Ok(nothing(empty.or_else(|| self.groups.shared.empty_cache.remembered(&self.alike.key)))),
            None => self.answer().await,
        }
    }
}

impl Drop for WaitingClaim {
    fn drop(&mut self) {
        // Close first, so that a claim that is in a query now is not put back afterwards.
        self.answered.close();
        if let Some(group) = self.groups.lock().get_mut(&self.alike.key) {
            group.patient.remove(&self.ticket);
            group.new.remove(&self.ticket);
        }
        if let (Ok(Ok(unheard)), Ok(runtime)) = (self.answered.try_recv(), Handle::try_current())
            && !unheard.items.is_empty()
        {
            runtime.spawn(self.groups.clone().give_back(self.alike.clone(), unheard.items));
        }
    }
}
