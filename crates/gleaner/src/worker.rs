//! A small runtime around the acts: claim, run, complete, and leave nothing behind on the way out.
//!
//! Push wakes it, an adaptive poll keeps it correct. Completions are written in batches, as large as they come.

mod control;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;
use uuid::Uuid;

pub use self::control::{Control, Mishap, Stats};
use crate::error::{Error, Result};
use crate::queue::{Answer, Claim, Failure, Item, Outcome, Queue};
use crate::transport::{DirectQueue, Push, Transport};

/// How a worker behaves. The defaults are those of the polling strategy: 5 s, half as long again each time, at most 30 s;
/// while bells are heard, 30 s to 60 s.
#[derive(Debug, Clone)]
pub struct Options {
    /// Known to the database as the holder. New at each process start by default.
    pub agent: String,
    /// Handlers that run at once.
    pub concurrency: usize,
    /// Rows taken by one claim, beyond what runs at once.
    pub prefetch: usize,
    pub owner: Option<String>,
    pub kinds: Option<Vec<String>>,
    pub poll_base: Duration,
    pub poll_max: Duration,
    pub poll_factor: f64,
    /// How long running handlers may take to finish when asked to stop; then their rows are released.
    pub grace: Duration,
    /// Listen for bells. Without it only the poll finds work.
    pub listen: bool,
    /// Stop when a claim comes back empty and nothing is running.
    pub until_empty: bool,
    /// Stop after this many items.
    pub take: Option<usize>,
    /// How often running rows are looked at, all in one statement, to learn that one was cancelled.
    pub watch: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            agent: Uuid::now_v7().to_string(),
            concurrency: 4,
            prefetch: 0,
            owner: None,
            kinds: None,
            poll_base: Duration::from_secs(5),
            poll_max: Duration::from_secs(30),
            poll_factor: 1.5,
            grace: Duration::from_secs(30),
            listen: true,
            until_empty: false,
            take: None,
            watch: Duration::from_secs(5),
        }
    }
}

/// What a handler knows of its item, besides the item.
#[derive(Debug, Clone)]
pub struct Context {
    queue: Arc<dyn Transport>,
    key: String,
    lease: i64,
    ended: watch::Receiver<bool>,
}

impl Context {
    /// Shows life, stage and partial results. Lost means: stop, the row is somebody else's or cancelled.
    pub async fn progress(&self, stage: &str, percent: Option<f64>, partial: Option<&Value>) -> Result<Outcome> {
        let (answer, _) = self.queue.progress(&self.key, self.lease, Some(stage), percent, partial).await?;
        Ok(answer.outcome)
    }

    /// Resolves when the row was cancelled or taken away: the result will not count.
    pub async fn ended(&mut self) {
        if self.ended.wait_for(|ended| *ended).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// What a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub completed: u64,
    pub failed: u64,
    pub lost: u64,
    pub released: u64,
}

/// Works one queue.
#[derive(Debug)]
pub struct Worker {
    queue: Arc<dyn Transport>,
    options: Options,
}

struct Running {
    ended: watch::Sender<bool>,
    hold: Duration,
    /// When its handler began; none while it waits for one.
    begun: Option<Instant>,
    /// Its handler has ended; the result is being written.
    finished: bool,
    extended: Instant,
    abort: Option<tokio::task::AbortHandle>,
}

/// Rows this worker holds, by key and lease: one that was taken away and claimed again is held twice for a moment, and the
/// former handler must learn of it. A plain mutex: never held across an await.
type Held = Arc<Mutex<HashMap<(String, i64), Running>>>;

struct Finished {
    id: (String, i64),
    result: std::result::Result<Option<Value>, Failure>,
    _permit: OwnedSemaphorePermit,
}

impl Worker {
    /// A worker on `queue`; `url` is where it listens for bells.
    pub fn new(queue: Queue, url: Option<&str>, options: Options) -> Self {
        Self::over(Arc::new(DirectQueue::new(queue, url)), options)
    }

    /// A worker that reaches its queue by `transport`.
    pub fn over(transport: Arc<dyn Transport>, options: Options) -> Self {
        Self { queue: transport, options }
    }

    /// Runs `handler` for every claimed item until `stop` turns true.
    ///
    /// A handler that fails or panics is a failed item, not a dead worker. Transient database errors are waited out.
    pub async fn run<H, F>(self, handler: H, mut stop: watch::Receiver<bool>) -> Result<Tally>
    where
        H: Fn(Item, Context) -> F + Send + Sync + 'static,
        F: Future<Output = std::result::Result<Option<Value>, Failure>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let held: Held = Arc::default();
        let (finished, ended) = mpsc::unbounded_channel::<Finished>();
        let completer = tokio::spawn(complete_all(self.queue.clone(), ended, held.clone()));
        let keeper = tokio::spawn(keep_alive(self.queue.clone(), held.clone(), self.options.watch));
        let running = Arc::new(Semaphore::new(self.options.concurrency));
        // What is claimed, running, or finished but not yet written: the bound on what a crash can lose time on.
        let slots = self.options.concurrency + self.options.prefetch;
        let outstanding = Arc::new(Semaphore::new(slots));
        let mut listener = if self.options.listen { self.queue.listen() } else { None };
        let mut pace = Pace::new(&self.options);
        let mut request = Uuid::new_v4();
        let mut to_take = self.options.take.unwrap_or(usize::MAX);

        let outcome = loop {
            if *stop.borrow() {
                break Ok(());
            }
            if to_take == 0 {
                // Not asked to stop, only to take no more: what runs may take its time.
                tokio::select! {
                    _ = outstanding.acquire_many(u32::try_from(slots).unwrap_or(u32::MAX)) => {}
                    _ = stop.wait_for(|s| *s) => {}
                }
                break Ok(());
            }
            // Wait for room, at least one slot; then take as many as are free.
            let first = tokio::select! {
                permit = outstanding.clone().acquire_owned() => permit.map_err(|_| Error::Other("the worker's slots are closed".into()))?,
                _ = stop.wait_for(|s| *s) => break Ok(()),
            };
            let mut permits = vec![first];
            while permits.len() < to_take
                && let Ok(more) = outstanding.clone().try_acquire_owned()
            {
                permits.push(more);
            }
            if let Some(listener) = &mut listener {
                listener.mark();
            }
            let mut claim = Claim::by(&self.options.agent).limit(i32::try_from(permits.len()).unwrap_or(i32::MAX));
            claim.owner.clone_from(&self.options.owner);
            claim.kinds.clone_from(&self.options.kinds);
            claim.request = Some(request);
            // Everything begins at once unless it has to wait for a handler.
            claim.started = self.options.prefetch == 0;
            let claimed = match self.queue.claim(&claim).await {
                Ok(claimed) => {
                    request = Uuid::new_v4();
                    claimed
                }
                Err(error) if error.is_transient() => {
                    // The same request id next time: had this claim succeeded, its rows come back instead of being lost.
                    let wait = pace.after_error();
                    tracing::warn!(%error, wait_ms = wait.as_millis(), "claim failed; trying again");
                    drop(permits);
                    tokio::select! { () = tokio::time::sleep(wait) => {}, _ = stop.wait_for(|s| *s) => break Ok(()) }
                    continue;
                }
                Err(error) => break Err(error),
            };
            let found = claimed.items.len();
            to_take = to_take.saturating_sub(found);
            for item in claimed.items {
                let Some(permit) = permits.pop() else { break };
                self.spawn(item, permit, &handler, &held, &running, &finished);
            }
            drop(permits);
            if found > 0 {
                pace.found();
                tracing::debug!(found, "claimed");
                continue;
            }
            let connected = listener.as_ref().is_some_and(|listener| listener.is_connected());
            if self.options.until_empty && outstanding.available_permits() == slots {
                break Ok(());
            }
            let wait = pace.empty(connected, claimed.next_due_in);
            tracing::debug!(found, next_ms = wait.as_millis(), "nothing due");
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = heard(listener.as_mut()) => pace.rung(),
                // The last handler of a draining worker ends: look once more.
                _ = outstanding.clone().acquire_many_owned(u32::try_from(slots).unwrap_or(u32::MAX)), if self.options.until_empty => {}
                _ = stop.wait_for(|s| *s) => break Ok(()),
            }
        };

        // Give back at once what has not begun, let what runs finish, and then give back what did not.
        running.close();
        let mut released = self.give_back(&held, |r| r.begun.is_none()).await;
        let drained = tokio::time::timeout(self.options.grace, outstanding.acquire_many(u32::try_from(slots).unwrap_or(u32::MAX))).await;
        if drained.is_err() {
            released += self.give_back(&held, |r| !r.finished).await;
        }
        drop(finished);
        keeper.abort();
        let mut tally = completer.await.map_err(|e| Error::Other(format!("the completer stopped: {e}")))?;
        tally.released = released;
        outcome.map(|()| tally)
    }

    /// Releases those of the held rows, and ends their handlers.
    async fn give_back(&self, held: &Held, which: impl Fn(&Running) -> bool) -> u64 {
        let left: Vec<((String, i64), Running)> = lock(held).extract_if(|_, running| which(running)).collect();
        if left.is_empty() {
            return 0;
        }
        for abort in left.iter().filter_map(|(_, running)| running.abort.as_ref()) {
            abort.abort();
        }
        let left: Vec<(&str, i64)> = left.iter().map(|((key, lease), _)| (key.as_str(), *lease)).collect();
        match self.queue.release(&left).await {
            Ok(answers) => answers.iter().filter(|a| a.outcome == Outcome::Done).count() as u64,
            Err(error) => {
                tracing::warn!(%error, "could not release what was left; it becomes due by itself");
                0
            }
        }
    }

    fn spawn<H, F>(
        &self,
        item: Item,
        permit: OwnedSemaphorePermit,
        handler: &Arc<H>,
        held: &Held,
        running: &Arc<Semaphore>,
        finished: &mpsc::UnboundedSender<Finished>,
    ) where
        H: Fn(Item, Context) -> F + Send + Sync + 'static,
        F: Future<Output = std::result::Result<Option<Value>, Failure>> + Send + 'static,
    {
        let (ended, ending) = watch::channel(false);
        let id = (item.key.clone(), item.lease);
        let context = Context { queue: self.queue.clone(), key: item.key.clone(), lease: item.lease, ended: ending };
        let taken = Instant::now();
        lock(held).insert(id.clone(), Running { ended, hold: item.lease_for, begun: None, finished: false, extended: taken, abort: None });
        let (handler, running, finished) = (handler.clone(), running.clone(), finished.clone());
        let (queue, mine) = (self.queue.clone(), held.clone());
        let task = tokio::spawn({
            let id = id.clone();
            async move {
                // Closed: the worker is about to stop, and gives the row back.
                let Ok(_running) = running.acquire_owned().await else { return };
                match lock(&mine).get_mut(&id) {
                    Some(row) => row.begun = Some(Instant::now()),
                    None => return,
                }
                // It waited here for most of its lease: make sure that it is still ours, and stays so.
                if taken.elapsed() >= item.lease_for / 2 {
                    match queue.progress(&id.0, id.1, None, None, None).await {
                        Ok((answer, left)) if answer.outcome == Outcome::Done => {
                            if let Some(row) = lock(&mine).get_mut(&id) {
                                (row.extended, row.hold) = (Instant::now(), left);
                            }
                        }
                        _ => {
                            tracing::debug!(key = id.0, "its lease was lost before a handler was free");
                            lock(&mine).remove(&id);
                            return;
                        }
                    }
                }
                let result = AssertUnwindSafe(handler(item, context)).catch_unwind().await.unwrap_or_else(|panic| {
                    let what = panic.downcast_ref::<&str>().map(|s| (*s).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
                    Err(Failure::new(what.unwrap_or_else(|| "the handler panicked".into())).category("Panic"))
                });
                if let Some(row) = lock(&mine).get_mut(&id) {
                    row.finished = true;
                }
                // The completer outlives every handler.
                let _ = finished.send(Finished { id, result, _permit: permit });
            }
        });
        if let Some(running) = lock(held).get_mut(&id) {
            running.abort = Some(task.abort_handle());
        }
    }
}

fn lock(held: &Held) -> std::sync::MutexGuard<'_, HashMap<(String, i64), Running>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn heard(listener: Option<&mut Box<dyn Push>>) {
    match listener {
        Some(listener) => listener.rung().await,
        None => std::future::pending().await,
    }
}

/// Writes results as they come: everything that is ready goes in one statement, without waiting for more.
async fn complete_all(queue: Arc<dyn Transport>, mut ended: mpsc::UnboundedReceiver<Finished>, held: Held) -> Tally {
    let mut tally = Tally::default();
    let mut batch = Vec::new();
    while ended.recv_many(&mut batch, 1000).await > 0 {
        let mut done = Vec::new();
        for finished in batch.drain(..) {
            match &finished.result {
                Ok(_) => done.push(finished),
                Err(failure) => {
                    let answer = insist(|| queue.fail(&finished.id.0, finished.id.1, failure)).await;
                    let told = lock(&held).remove(&finished.id).is_some_and(|r| *r.ended.borrow());
                    match &answer {
                        // The handler was told that its row was taken away, and ended for that reason.
                        Ok(answer) if told && matches!(answer.outcome, Outcome::Lost | Outcome::Gone) => tally.lost += 1,
                        _ => count(&mut tally, answer.as_ref().map(std::slice::from_ref), &mut |t| t.failed += 1),
                    }
                }
            }
        }
        if done.is_empty() {
            continue;
        }
        let results: Vec<(&str, i64, Option<Value>)> =
            done.iter().map(|f| (f.id.0.as_str(), f.id.1, f.result.clone().ok().flatten())).collect();
        let answers = insist(|| queue.complete(&results)).await;
        if answers.is_err() && results.len() > 1 {
            // One that cannot be written, whatever the reason, must not cost the others their results.
            for result in results.chunks(1) {
                let answers = insist(|| queue.complete(result)).await;
                count(&mut tally, answers.as_deref(), &mut |t| t.completed += 1);
            }
        } else {
            count(&mut tally, answers.as_deref(), &mut |t| t.completed += 1);
        }
        let mut held = lock(&held);
        for finished in &done {
            held.remove(&finished.id);
        }
    }
    tally
}

fn count(tally: &mut Tally, answers: Result<&[Answer], &Error>, done: &mut dyn FnMut(&mut Tally)) {
    match answers {
        Ok(answers) => {
            for answer in answers {
                match answer.outcome {
                    Outcome::Done | Outcome::Already => done(tally),
                    Outcome::Lost | Outcome::Gone => {
                        tracing::warn!(key = answer.key, status = answer.status, "the lease was lost; the result does not count");
                        tally.lost += 1;
                    }
                }
            }
        }
        Err(error) => tracing::error!(%error, "a result could not be written; its row becomes due again by itself"),
    }
}

/// Repeats an act while the database is only momentarily in trouble. All acts of a holder can be repeated.
async fn insist<T, F: Future<Output = Result<T>>>(act: impl Fn() -> F) -> Result<T> {
    let mut wait = Duration::from_millis(100);
    for _ in 0..12 {
        match act().await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, wait_ms = wait.as_millis(), "trying again");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(Duration::from_secs(10));
            }
            other => return other,
        }
    }
    act().await
}

/// Shows life for handlers that run long, and tells them when their row was taken away or cancelled.
async fn keep_alive(queue: Arc<dyn Transport>, held: Held, watch: Duration) {
    let mut watched = Instant::now();
    loop {
        // Often enough for the shortest hold.
        let shortest = lock(&held).values().map(|r| r.hold / 10).min().unwrap_or(Duration::MAX);
        tokio::time::sleep(watch.min(Duration::from_millis(500)).min(shortest).max(Duration::from_millis(20))).await;
        let now = Instant::now();
        if now.duration_since(watched) >= watch {
            watched = now;
            tell_ended(&*queue, &held, watch).await;
        }
        let due: Vec<(String, i64)> = lock(&held)
            .iter()
            // The database writes an extension only when less than half the hold is left. A row that waits for a handler shows no
            // life: it has none, and whoever is free may have it when its time is over.
            .filter(|(_, r)| r.begun.is_some() && now.duration_since(r.extended) > r.hold.mul_f64(0.55))
            .map(|(id, _)| id.clone())
            .collect();
        for id in due {
            match queue.progress(&id.0, id.1, None, None, None).await {
                Ok((answer, left)) => {
                    if let Some(running) = lock(&held).get_mut(&id) {
                        if answer.outcome == Outcome::Done {
                            running.extended = Instant::now();
                            running.hold = left.max(Duration::from_secs(1));
                        } else {
                            running.ended.send_replace(true);
                        }
                    }
                }
                Err(error) => tracing::debug!(%error, key = id.0, "could not show life; trying again"),
            }
        }
    }
}

/// Work that has run for a while may have been cancelled under its hands; quick work learns it when it completes.
async fn tell_ended(queue: &dyn Transport, held: &Held, watch: Duration) {
    let running: Vec<(String, i64)> = lock(held)
        .iter()
        .filter(|(_, r)| r.begun.is_some_and(|begun| begun.elapsed() >= watch) && !r.finished)
        .map(|(id, _)| id.clone())
        .collect();
    if running.is_empty() {
        return;
    }
    let asked: Vec<(&str, i64)> = running.iter().map(|(key, lease)| (key.as_str(), *lease)).collect();
    match queue.ended(&asked).await {
        Ok(ended) => {
            let held = lock(held);
            for id in running.iter().filter(|(key, lease)| ended.iter().any(|e| e.0 == *key && e.1 == *lease)) {
                if let Some(running) = held.get(id) {
                    running.ended.send_replace(true);
                }
            }
        }
        Err(error) => tracing::debug!(%error, "could not look after running work; trying again"),
    }
}

/// How long to wait before the next look.
struct Pace {
    base: Duration,
    max: Duration,
    factor: f64,
    next: Duration,
    empties: u32,
    errors: u32,
    /// A wake that finds nothing looks again: the bell can ring before the row can be seen.
    again: usize,
    /// Looks in a row that found rows due and could have none: others hold their locks, and may yet roll back.
    blocked: usize,
}

impl Pace {
    const AGAIN: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(1000)];

    fn new(options: &Options) -> Self {
        Self {
            base: options.poll_base,
            max: options.poll_max,
            factor: options.poll_factor,
            next: options.poll_base,
            empties: 0,
            errors: 0,
            again: Self::AGAIN.len(),
            blocked: 0,
        }
    }

    fn found(&mut self) {
        self.next = self.base;
        self.empties = 0;
        self.errors = 0;
        self.blocked = 0;
        self.again = Self::AGAIN.len();
    }

    fn rung(&mut self) {
        self.again = 0;
    }

    fn empty(&mut self, pushed: bool, next_due_in: Option<Duration>) -> Duration {
        self.errors = 0;
        let mut wait = if let Some(again) = Self::AGAIN.get(self.again) {
            self.again += 1;
            *again
        } else {
            // While bells are heard the poll is only for what they miss.
            let (base, max) = if pushed { (self.max, self.max * 2) } else { (self.base, self.max) };
            self.empties += 1;
            self.next = if self.empties <= 2 { base } else { self.next.mul_f64(self.factor).clamp(base, max) };
            // Up to a tenth more, so that a fleet started together does not poll together.
            self.next.mul_f64(1.0 + f64::from(std::process::id() % 100) / 1000.0)
        };
        match next_due_in {
            Some(due) if due.is_zero() => {
                wait = wait.min(Self::AGAIN[self.blocked.min(Self::AGAIN.len() - 1)]);
                self.blocked += 1;
            }
            Some(due) => {
                wait = wait.min(due.max(Duration::from_millis(1)));
                self.blocked = 0;
            }
            None => self.blocked = 0,
        }
        wait
    }

    fn after_error(&mut self) -> Duration {
        self.errors = (self.errors + 1).min(6);
        Duration::from_millis(250 * (1 << self.errors)).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_poll_backs_off_as_the_spec_says() {
        let mut pace = Pace::new(&Options::default());
        let waits: Vec<f64> = (0..8).map(|_| pace.empty(false, None).as_secs_f64()).collect();
        for (wait, spec) in waits.iter().zip([5.0, 5.0, 7.5, 11.25, 16.87, 25.31, 30.0, 30.0]) {
            assert!(*wait >= spec - 0.01 && *wait <= spec * 1.1 + 0.01, "{waits:?}");
        }
        pace.found();
        assert!(pace.empty(false, None).as_secs_f64() < 5.6);
    }

    #[test]
    fn a_scheduled_row_is_never_slept_past() {
        let mut pace = Pace::new(&Options::default());
        assert_eq!(pace.empty(true, Some(Duration::from_millis(700))), Duration::from_millis(700));
    }

    #[test]
    fn a_row_that_is_due_and_cannot_be_had_is_not_asked_for_without_pause() {
        let mut pace = Pace::new(&Options::default());
        let waits: Vec<Duration> = (0..5).map(|_| pace.empty(true, Some(Duration::ZERO))).collect();
        assert_eq!(waits, [50, 200, 1000, 1000, 1000].map(Duration::from_millis));
    }

    #[test]
    fn a_ring_that_finds_nothing_looks_again() {
        let mut pace = Pace::new(&Options::default());
        pace.rung();
        assert_eq!([pace.empty(true, None), pace.empty(true, None), pace.empty(true, None)], Pace::AGAIN);
        assert!(pace.empty(true, None) >= Duration::from_secs(30));
    }
}
