//! Equal claims wait in one line, in the order in which they arrived.
//!
//! One task ([`super::look`]) serves a line for as long as it contains claims. However many claims wait, only one task
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

use super::gate::{Empty, Gate};
use super::key::Key;

/// The most claims in one statement.
pub(super) const MOST_TOGETHER: usize = 64;

/// The result of a claim. An error is shared by all claims of the same query.
pub(super) type Answer = Result<Claimed, Arc<Error>>;

/// All lines. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub pool: Pool,
    pub ears: Arc<SharedListener>,
    pub gate: Arc<Gate>,
    pub looks: AtomicU64,
    tickets: AtomicU64,
    lines: Mutex<HashMap<Key, Line>>,
}

/// What equal claims have in common: the same queue, the same caller and the same conditions.
#[derive(Debug, Clone)]
pub(super) struct Alike {
    pub key: Key,
    pub queue: String,
    pub caller: Caller,
    /// The queue's acts as the latest claim knows them. `gleaner attach` may change the queue while the line goes on.
    pub acts: Arc<Acts>,
}

#[derive(Debug)]
pub(super) struct Line {
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
    pub asked: Asked,
    answer: oneshot::Sender<Answer>,
}

/// A claim, and what was known when it arrived.
#[derive(Debug)]
pub(super) struct Asked {
    pub claim: Claim,
    /// The number of notifications at that time. A query that began before the last of them proves nothing for this claim.
    pub heard: u64,
    pub until: Instant,
    /// The request may have been sent before. Even if the queue is known to be empty, the database is queried for the rows
    /// that were claimed for it.
    pub repeats: bool,
    /// A query would find nothing now: either the gate says so, or the claim has already been in a query.
    pub known_empty: bool,
}

impl Waiting {
    pub(super) fn answer(self, answer: Answer) -> Result<(), Answer> {
        self.answer.send(answer)
    }
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.patient.is_empty()
    }

    /// Takes out the claims for the next query: all new ones, and up to `patient` of the patient ones, oldest first. While
    /// the queue is known to be empty, no patient claim is taken, unless a query is needed anyway.
    pub(super) fn take(&mut self, known_empty: bool, patient: usize, most: usize) -> BTreeMap<u64, Waiting> {
        let looks = !known_empty || self.new.values().any(|waiting| !waiting.asked.repeats);
        let patient = if looks { self.patient.keys().take(patient).copied().collect() } else { Vec::new() };
        let mut tickets: Vec<u64> = patient.into_iter().chain(self.new.keys().take(most).copied()).collect();
        tickets.sort_unstable();
        tickets.truncate(most);
        let mut take = |ticket: u64| self.patient.remove(&ticket).or_else(|| self.new.remove(&ticket)).map(|waiting| (ticket, waiting));
        tickets.into_iter().filter_map(&mut take).collect()
    }

    /// Puts a claim into the line, unless its client has left. A claim with no time left joins the next query and gets its
    /// answer from it.
    pub(super) fn put(&mut self, ticket: u64, waiting: Waiting) {
        if waiting.answer.is_closed() {
            return;
        }
        let Asked { known_empty, repeats, until, .. } = waiting.asked;
        let is_patient = known_empty && !repeats && until > Instant::now();
        if is_patient { &mut self.patient } else { &mut self.new }.insert(ticket, waiting);
    }

    /// A query that began after `rings` notifications found nothing. That is the answer for every claim that had seen no
    /// later notification. Claims with time left stay in line.
    pub(super) fn nothing_found(&mut self, rings: u64, empty: Empty) {
        self.empty = Some(empty);
        let now = Instant::now();
        for (ticket, waiting) in std::mem::take(&mut self.new) {
            if waiting.asked.heard > rings || waiting.asked.repeats {
                self.new.insert(ticket, waiting);
            } else if waiting.asked.until > now {
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

impl Lines {
    pub(super) fn new(pool: Pool, ears: Arc<SharedListener>, gate: Arc<Gate>) -> Self {
        let shared = Shared { pool, ears, gate, looks: AtomicU64::new(0), tickets: AtomicU64::new(0), lines: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// How many statements claims have taken.
    pub(super) fn looks(&self) -> u64 {
        self.shared.looks.load(Ordering::Relaxed)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Key, Line>> {
        self.shared.lines.lock().expect("no panic holds it")
    }

    /// Adds a claim to its line.
    pub(super) fn join(&self, alike: Alike, asked: Asked) -> Place {
        let ticket = self.shared.tickets.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let mut lines = self.lock();
        let is_first = !lines.contains_key(&alike.key);
        let line = lines.entry(alike.key).or_insert_with(|| Line {
            alike: alike.clone(),
            new: BTreeMap::new(),
            patient: BTreeMap::new(),
            empty: None,
            came: Arc::default(),
        });
        line.alike.acts = alike.acts.clone();
        line.put(ticket, Waiting { asked, answer });
        line.came.notify_one();
        drop(lines);
        if is_first {
            // Runs in a task of its own: a client that disconnects must not cancel the other clients' claims.
            tokio::spawn(self.clone().serve(alike.clone()));
        }
        Place { lines: self.clone(), alike, ticket, answered }
    }
}

/// A place in line. Dropping it leaves the line, and releases the rows that were claimed for it in the meantime.
#[derive(Debug)]
pub(super) struct Place {
    lines: Lines,
    alike: Alike,
    ticket: u64,
    answered: oneshot::Receiver<Answer>,
}

impl Place {
    pub(super) async fn answer(&mut self) -> Answer {
        (&mut self.answered).await.unwrap_or_else(|_| Err(Arc::new(Error::Other("the claim was given up".into()))))
    }

    /// Leaves when the time to wait is over. The answer is empty, unless a query for this claim is running or about to run.
    pub(super) async fn leave(mut self) -> Answer {
        let left = self.lines.lock().get_mut(&self.alike.key).and_then(|line| line.patient.remove(&self.ticket).map(|_| line.empty));
        match left {
            Some(empty) => Ok(nothing(empty.or_else(|| self.lines.shared.gate.remembered(&self.alike.key)))),
            None => self.answer().await,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Close first, so that a claim that is in a query now is not put back afterwards.
        self.answered.close();
        if let Some(line) = self.lines.lock().get_mut(&self.alike.key) {
            line.patient.remove(&self.ticket);
            line.new.remove(&self.ticket);
        }
        if let (Ok(Ok(unheard)), Ok(runtime)) = (self.answered.try_recv(), Handle::try_current())
            && !unheard.items.is_empty()
        {
            runtime.spawn(self.lines.clone().give_back(self.alike.clone(), unheard.items));
        }
    }
}
