//! Claims that are alike stand in one line, in the order in which they came.
//!
//! A line is served by one task ([`super::look`]), for as long as somebody stands in it: however many wait, one looks.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use gleaner::bell::Ears;
use gleaner::queue::Claimed;
use gleaner::{Acts, Claim, Error, Pool};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::gate::{Empty, Gate};
use super::key::Key;
use crate::access::Caller;

/// Claims in one statement.
pub const MOST_TOGETHER: usize = 64;

/// What a claim came to. The error is shared by all that asked together.
pub type Answer = Result<Claimed, Arc<Error>>;

/// All lines. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Lines {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub pool: Pool,
    pub ears: Arc<Ears>,
    pub gate: Arc<Gate>,
    pub looks: AtomicU64,
    tickets: AtomicU64,
    lines: Mutex<HashMap<Key, Line>>,
}

/// Those who claim the same: same queue, same caller, same wishes.
#[derive(Debug, Clone)]
pub struct Alike {
    pub key: Key,
    pub queue: String,
    pub caller: Caller,
    /// The queue as the last one to come knows it: `gleaner attach` may change it while the line never ends.
    pub acts: Arc<Acts>,
}

#[derive(Debug)]
pub(super) struct Line {
    pub alike: Alike,
    /// Nobody has looked for these yet.
    pub new: BTreeMap<u64, Waiting>,
    /// A look found nothing for these, and they have time.
    pub patient: BTreeMap<u64, Waiting>,
    /// What the last look that found nothing was told.
    pub empty: Option<Empty>,
    /// Somebody new has come.
    pub came: Arc<Notify>,
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub asked: Asked,
    answer: oneshot::Sender<Answer>,
}

/// A claim, and what was known when it came.
#[derive(Debug)]
pub struct Asked {
    pub claim: Claim,
    /// How often the bell had rung: a look that began before the last of these rings proves nothing to this claim.
    pub heard: u64,
    pub until: Instant,
    /// The request may have been sent before: whatever is known of the queue, the database is asked what it was given.
    pub repeats: bool,
    /// It would find nothing now: the gate says so, or it has been in a look.
    pub known_empty: bool,
}

impl Waiting {
    pub fn answer(self, answer: Answer) -> Result<(), Answer> {
        self.answer.send(answer)
    }
}

impl Line {
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.patient.is_empty()
    }

    /// Takes those out who are in the next look: everybody new, and as many of the patient as `patient` says, the oldest first.
    /// Nobody patient while it is known that there is nothing, unless there is to be a look anyway.
    pub fn take(&mut self, known_empty: bool, patient: usize, most: usize) -> BTreeMap<u64, Waiting> {
        let looks = !known_empty || self.new.values().any(|waiting| !waiting.asked.repeats);
        let patient = if looks { self.patient.keys().take(patient).copied().collect() } else { Vec::new() };
        let mut tickets: Vec<u64> = patient.into_iter().chain(self.new.keys().take(most).copied()).collect();
        tickets.sort_unstable();
        tickets.truncate(most);
        let mut take = |ticket: u64| self.patient.remove(&ticket).or_else(|| self.new.remove(&ticket)).map(|waiting| (ticket, waiting));
        tickets.into_iter().filter_map(&mut take).collect()
    }

    /// Puts somebody in their place, unless they have left. Whoever has no time left is in the next look, and has its answer then.
    pub fn put(&mut self, ticket: u64, waiting: Waiting) {
        if waiting.answer.is_closed() {
            return;
        }
        let Asked { known_empty, repeats, until, .. } = waiting.asked;
        let is_patient = known_empty && !repeats && until > Instant::now();
        if is_patient { &mut self.patient } else { &mut self.new }.insert(ticket, waiting);
    }

    /// A look that began at `rings` found nothing: that is the answer for everybody who had not heard of more. Those with time
    /// left stay in line.
    pub fn nothing_found(&mut self, rings: u64, empty: Empty) {
        self.empty = Some(empty);
        let now = Instant::now();
        for (ticket, waiting) in std::mem::take(&mut self.new) {
            if waiting.asked.heard > rings || waiting.asked.repeats {
                self.new.insert(ticket, waiting);
            } else if waiting.asked.until > now {
                self.patient.insert(ticket, waiting);
            } else {
                // Whoever has left needs no answer.
                let _ = waiting.answer(Ok(nothing(Some(empty))));
            }
        }
    }
}

fn nothing(empty: Option<Empty>) -> Claimed {
    Claimed { items: Vec::new(), next_due_in: empty.and_then(|empty| empty.next_due_in()) }
}

impl Lines {
    pub fn new(pool: Pool, ears: Arc<Ears>, gate: Arc<Gate>) -> Self {
        let shared = Shared { pool, ears, gate, looks: AtomicU64::new(0), tickets: AtomicU64::new(0), lines: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// How many statements claims have taken.
    pub fn looks(&self) -> u64 {
        self.shared.looks.load(Ordering::Relaxed)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Key, Line>> {
        self.shared.lines.lock().expect("no panic holds it")
    }

    /// Stands in line.
    pub fn join(&self, alike: Alike, asked: Asked) -> Place {
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
            // A task of its own: a client that goes away must not take the others' claims with it.
            tokio::spawn(self.clone().serve(alike.clone()));
        }
        Place { lines: self.clone(), alike, ticket, answered }
    }
}

/// A place in line. Whoever drops it leaves, and what it was given meanwhile goes back.
#[derive(Debug)]
pub struct Place {
    lines: Lines,
    alike: Alike,
    ticket: u64,
    answered: oneshot::Receiver<Answer>,
}

impl Place {
    pub async fn answer(&mut self) -> Answer {
        (&mut self.answered).await.unwrap_or_else(|_| Err(Arc::new(Error::Other("the claim was given up".into()))))
    }

    /// The time is over: the answer is that there is nothing, unless a look for this claim is under way or to come.
    pub async fn leave(mut self) -> Answer {
        let left = self.lines.lock().get_mut(&self.alike.key).and_then(|line| line.patient.remove(&self.ticket).map(|_| line.empty));
        match left {
            Some(empty) => Ok(nothing(empty.or_else(|| self.lines.shared.gate.remembered(&self.alike.key)))),
            None => self.answer().await,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // First, so that nobody who is in a look now is put back afterwards.
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
