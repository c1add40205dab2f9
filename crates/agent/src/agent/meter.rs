//! Counts the calls between a worker and its queue: per queue, whichever transport is used.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use gleaner::queue::{Answer, Claim, Claimed, Waiting};
use gleaner::transport::{Push, Transport};
use gleaner::{Acts, Completion, Error, Failure, Held, Item, Outcome, Progress, Result};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

/// Upper bounds of the poll duration histogram, in seconds.
pub(crate) const BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

/// The queue whose polls are logged.
const FOLLOWUPS: &str = gleaner_systems::followups::QUEUE;

/// The figures of one queue. They outlive the transport, which is reopened after an error.
#[derive(Debug)]
pub struct Meter {
    pub queue: String,
    seen: Mutex<Seen>,
}

#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub polls: u64,
    /// Polls that took no longer than each of [`BOUNDS`]. Longer polls are in none of them.
    pub buckets: [u64; BOUNDS.len()],
    pub poll_time: Duration,
    pub last_poll: Option<Instant>,
    pub errors_in_a_row: u32,
    /// The last error, until the next success.
    pub trouble: Option<Trouble>,
    pub claimed: u64,
    pub completed: u64,
    pub failed: u64,
    pub released: u64,
    pub lost: u64,
    waiting: Option<(Option<Waiting>, Instant)>,
    /// How many of the completed items the log knows of.
    logged: u64,
    held: HashSet<Held>,
    transport: Option<(Arc<dyn Transport>, Claim)>,
}

/// A series of errors, from the first error to the next success.
#[derive(Debug, Clone, Serialize)]
pub struct Trouble {
    /// The newest error.
    pub message: String,
    /// When the first error of the series happened, in seconds since the Unix epoch.
    pub since: u64,
    /// It lasts until a person changes something.
    pub lasting: bool,
    /// There are no more retries.
    pub ended: bool,
}

impl Trouble {
    pub fn new(error: &Error) -> Self {
        Self::saying(error.to_string(), !error.is_transient())
    }

    pub fn saying(message: String, lasting: bool) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Self { message, since, lasting, ended: false }
    }

    /// Continues `earlier`, if there was no success in between.
    pub fn after(self, earlier: Option<&Self>) -> Self {
        Self { since: earlier.map_or(self.since, |earlier| earlier.since), ..self }
    }
}

impl Seen {
    fn went_wrong(&mut self, error: &Error) {
        self.errors_in_a_row = self.errors_in_a_row.saturating_add(1);
        self.trouble = Some(Trouble::new(error).after(self.trouble.as_ref()));
    }

    pub fn waiting(&self) -> Option<Waiting> {
        self.waiting.and_then(|(waiting, _)| waiting)
    }
}

impl Meter {
    pub fn new(queue: &str) -> Arc<Self> {
        Arc::new(Self { queue: queue.to_owned(), seen: Mutex::default() })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current figures.
    pub fn read(&self) -> Seen {
        self.seen().clone()
    }

    /// Records an error outside of an act, such as in opening the queue.
    pub fn trouble(&self, error: &Error) {
        self.seen().went_wrong(error);
    }

    /// Wraps `transport` so that its calls are counted. `claim` is the worker's claim; the count of waiting items uses it.
    pub fn on(self: &Arc<Self>, transport: Arc<dyn Transport>, claim: Claim) -> Arc<dyn Transport> {
        self.seen().transport = Some((transport.clone(), claim));
        Arc::new(Metered { inner: transport, meter: self.clone() })
    }

    /// Counts the waiting items, unless that was done a moment ago.
    pub async fn refresh(&self, every: Duration, patience: Duration) {
        let asked = {
            let mut seen = self.seen();
            if seen.waiting.is_some_and(|(_, at)| at.elapsed() < every) {
                return;
            }
            let Some((transport, claim)) = seen.transport.clone() else { return };
            // A caller that comes meanwhile gets the previous figure.
            seen.waiting = Some((seen.waiting(), Instant::now()));
            (transport, claim)
        };
        let found = tokio::time::timeout(patience, asked.0.waiting(&asked.1)).await;
        let waiting = match found {
            Ok(Ok(waiting)) => waiting,
            Ok(Err(error)) => {
                tracing::debug!(queue = self.queue, %error, "could not count what waits");
                None
            }
            Err(_) => None,
        };
        self.seen().waiting = Some((waiting, Instant::now()));
    }

    /// Releases everything that is held at once. The lease prevents work that is still running from overwriting the item later.
    pub async fn release_all(&self) -> u64 {
        let (held, transport) = {
            let mut seen = self.seen();
            (std::mem::take(&mut seen.held), seen.transport.clone())
        };
        let Some((transport, _)) = transport.filter(|_| !held.is_empty()) else { return 0 };
        let held: Vec<Held> = held.into_iter().collect();
        match transport.release(&held).await {
            Ok(answers) => answers.iter().filter(|answer| answer.outcome == Outcome::Done).count() as u64,
            Err(error) => {
                tracing::warn!(queue = self.queue, %error, "could not release what was left; it becomes due by itself");
                0
            }
        }
    }

    fn claimed(&self, took: Duration, claimed: &Result<Claimed>) {
        let mut seen = self.seen();
        if let Ok(claimed) = claimed
            && self.queue == FOLLOWUPS
        {
            let executed = seen.completed - seen.logged;
            seen.logged = seen.completed;
            tracing::info!("Poll cycle: found {} due actions, executed {executed}", claimed.items.len());
        }
        seen.polls += 1;
        seen.poll_time += took;
        seen.last_poll = Some(Instant::now());
        for (bucket, bound) in seen.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(took.as_secs_f64() <= bound);
        }
        match claimed {
            Ok(claimed) => {
                (seen.errors_in_a_row, seen.trouble) = (0, None);
                seen.claimed += claimed.items.len() as u64;
                seen.held.extend(claimed.items.iter().map(Item::held));
            }
            Err(error) => seen.went_wrong(error),
        }
    }

    /// Acts that end a hold, whatever their outcome.
    fn ended<'a>(&self, held: impl IntoIterator<Item = &'a Held>, answers: &[Answer], count: fn(&mut Seen) -> &mut u64) {
        let mut seen = self.seen();
        for held in held {
            seen.held.remove(held);
        }
        for answer in answers {
            match answer.outcome {
                Outcome::Done | Outcome::Already => *count(&mut seen) += 1,
                Outcome::Lost | Outcome::Gone => seen.lost += 1,
            }
        }
    }
}

/// A transport whose calls are counted.
#[derive(Debug)]
struct Metered {
    inner: Arc<dyn Transport>,
    meter: Arc<Meter>,
}

#[async_trait]
impl Transport for Metered {
    fn queue(&self) -> &str {
        self.inner.queue()
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed> {
        let began = Instant::now();
        let claimed = self.inner.claim(claim).await;
        self.meter.claimed(began.elapsed(), &claimed);
        claimed
    }

    async fn start(&self, held: &[Held]) -> Result<Vec<Answer>> {
        self.inner.start(held).await
    }

    async fn progress(&self, held: &Held, progress: &Progress) -> Result<(Answer, Duration)> {
        self.inner.progress(held, progress).await
    }

    async fn complete(&self, done: &[Completion]) -> Result<Vec<Answer>> {
        let answers = self.inner.complete(done).await?;
        self.meter.ended(done.iter().map(|done| &done.held), &answers, |seen| &mut seen.completed);
        Ok(answers)
    }

    async fn fail(&self, held: &Held, failure: &Failure) -> Result<Answer> {
        let answer = self.inner.fail(held, failure).await?;
        self.meter.ended(std::iter::once(held), std::slice::from_ref(&answer), |seen| &mut seen.failed);
        Ok(answer)
    }

    async fn release(&self, held: &[Held]) -> Result<Vec<Answer>> {
        let answers = self.inner.release(held).await?;
        self.meter.ended(held, &answers, |seen| &mut seen.released);
        Ok(answers)
    }

    async fn snooze(&self, held: &Held, by: Duration) -> Result<Answer> {
        let answer = self.inner.snooze(held, by).await?;
        self.meter.ended(std::iter::once(held), std::slice::from_ref(&answer), |seen| &mut seen.released);
        Ok(answer)
    }

    async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        self.inner.cancel(keys, reason).await
    }

    async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>> {
        self.inner.explain(key, owner).await
    }

    async fn ended(&self, held: &[Held]) -> Result<Vec<Held>> {
        self.inner.ended(held).await
    }

    async fn waiting(&self, claim: &Claim) -> Result<Option<Waiting>> {
        self.inner.waiting(claim).await
    }

    fn has_owners(&self) -> bool {
        self.inner.has_owners()
    }

    fn has_kinds(&self) -> bool {
        self.inner.has_kinds()
    }

    fn acts(&self) -> Option<&Acts> {
        self.inner.acts()
    }

    fn listen(&self) -> Option<Box<dyn Push>> {
        self.inner.listen()
    }
}
