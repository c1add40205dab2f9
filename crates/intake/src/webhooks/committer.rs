//! Group commit: requests that arrive together share one statement and one commit, and each is answered after it.
//!
//! A few tasks take turns. A free task takes all waiting requests; meanwhile the next batch collects. No request is delayed
//! to make a batch larger: under load, commits take longer than the time between requests, and batches grow by themselves.

mod columns;
mod statement;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gleaner::notify::Notifier;
use gleaner_http::database::Pool;
use tokio::sync::{Mutex, mpsc, oneshot};

pub(crate) use self::statement::{Committed, EventRow, Submission};
use self::statement::{Trouble, commit};

/// The most requests that wait for their turn. Beyond that, the webhook handler itself waits.
const WAITING: usize = 4096;

/// The most bytes in one statement. The number of requests is configured.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// How requests share commits.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// The number of tasks that commit, in turns.
    pub tasks: usize,
    /// The most requests in one commit.
    pub group: usize,
    /// How long a request may wait for its commit.
    pub within: Duration,
}

/// Why a request was not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotStored {
    /// PostgreSQL will never accept this request, because of its values (class 22) or a rule of the schema (class 23).
    #[error("the database does not take it ({code})")]
    Data { code: String },
    /// The outcome is unknown, or nothing happened. Sending the request again is safe: the same event is stored once.
    #[error("{0}")]
    Away(String),
}

/// A request that waits for its commit, and the channel for its answer.
#[derive(Debug)]
struct Waiting {
    submission: Submission,
    until: Instant,
    answer: oneshot::Sender<Result<Committed, NotStored>>,
}

/// Accepts requests to commit. Cheap to clone. The tasks end when the last clone is dropped and every waiting request is
/// answered.
#[derive(Debug, Clone)]
pub struct Committer {
    queue: mpsc::Sender<Waiting>,
    within: Duration,
}

impl Committer {
    /// Starts the tasks. The handles end after the last clone of the committer is dropped.
    pub fn start(pool: &Pool, notifier: &Notifier, how: How) -> (Self, Vec<tokio::task::JoinHandle<()>>) {
        let (queue, waiting) = mpsc::channel(WAITING);
        let waiting = Arc::new(Mutex::new(waiting));
        let run = || run(pool.clone(), notifier.clone(), Arc::clone(&waiting), how.group.max(1));
        let tasks = (0..how.tasks.max(1)).map(|_| tokio::spawn(run())).collect();
        (Self { queue, within: how.within }, tasks)
    }

    /// How many requests wait for a task.
    pub fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Stores what the request contains, and returns when it is durable.
    pub async fn commit(&self, submission: Submission) -> Result<Committed, NotStored> {
        let until = Instant::now() + self.within;
        let (answer, answered) = oneshot::channel();
        let away = |what: &str| NotStored::Away(what.to_owned());
        let sent = self.queue.send_timeout(Waiting { submission, until, answer }, self.within).await;
        sent.map_err(|_| away("too many requests wait for the database"))?;
        // The committer watches the time limit itself. This margin is for the statement that is running when the time is
        // over.
        let patience = until.saturating_duration_since(Instant::now()) + Duration::from_millis(500);
        match tokio::time::timeout(patience, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(away("the server is stopping")),
            Err(_) => Err(away("the database did not answer in time")),
        }
    }
}

/// Commits one submission by itself, once. For a replay, where no sender waits for the response.
pub(super) async fn commit_alone(pool: &Pool, submission: &Submission, within: Duration) -> Result<Committed, NotStored> {
    let until = Instant::now() + within;
    match commit(pool, &[submission], until).await {
        Ok(mut outcomes) => outcomes.pop().ok_or_else(|| NotStored::Away("no answer".to_owned())),
        Err(Trouble::Refused { code }) => Err(NotStored::Data { code }),
        Err(Trouble::Broken(text) | Trouble::Away(text)) => Err(NotStored::Away(text)),
    }
}

async fn run(pool: Pool, notifier: Notifier, queue: Arc<Mutex<mpsc::Receiver<Waiting>>>, most: usize) {
    while let Some(batch) = take(&queue, most).await {
        if settle(&pool, batch).await {
            notifier.notify("activities");
        }
    }
}

/// Takes all waiting requests, within limits, and waits for the first. None when no more can arrive.
async fn take(queue: &Mutex<mpsc::Receiver<Waiting>>, most: usize) -> Option<Vec<Waiting>> {
    let mut queue = queue.lock().await;
    let first = queue.recv().await?;
    let mut bytes = first.submission.size();
    let mut batch = vec![first];
    while batch.len() < most && bytes < BATCH_BYTES {
        let Ok(next) = queue.try_recv() else { break };
        bytes += next.submission.size();
        batch.push(next);
    }
    // The same order everywhere, so that two servers that store the same events wait for each other instead of deadlocking.
    batch.sort_by(|one, other| one.submission.order().cmp(&other.submission.order()));
    Some(batch)
}

/// Commits the batch and answers every request in it. True when there is new work.
async fn settle(pool: &Pool, batch: Vec<Waiting>) -> bool {
    match attempt(pool, batch).await {
        Ok(fresh) => fresh,
        // The database refuses something in the batch. Commit one request at a time, so that only the faulty one fails.
        Err((batch, _)) if batch.len() > 1 => {
            let mut fresh = false;
            for waiting in batch {
                fresh |= match attempt(pool, vec![waiting]).await {
                    Ok(fresh) => fresh,
                    Err((alone, refused)) => refuse(alone, &refused),
                };
            }
            fresh
        }
        Err((alone, refused)) => refuse(alone, &refused),
    }
}

fn refuse(batch: Vec<Waiting>, why: &NotStored) -> bool {
    for waiting in batch {
        let _ = waiting.answer.send(Err(why.clone()));
    }
    false
}

/// Runs one statement, and repeats it on a fresh connection for as long as a sender waits. Returns the batch when
/// PostgreSQL refuses it.
async fn attempt(pool: &Pool, mut batch: Vec<Waiting>) -> Result<bool, (Vec<Waiting>, NotStored)> {
    let mut pause = Duration::from_millis(20);
    loop {
        // Requests whose sender hung up or waited too long are not stored: the sender will retry.
        batch = batch.into_iter().filter_map(still_waiting).collect();
        let Some(until) = batch.iter().map(|waiting| waiting.until).min() else { return Ok(false) };
        let submissions: Vec<&Submission> = batch.iter().map(|waiting| &waiting.submission).collect();
        let trouble = match tokio::time::timeout_at(until.into(), commit(pool, &submissions, until)).await {
            Ok(Ok(outcomes)) => return Ok(answer(batch, outcomes)),
            Ok(Err(trouble)) => trouble,
            Err(_) => Trouble::Away("no answer in time".to_owned()),
        };
        match trouble {
            Trouble::Refused { code } => return Err((batch, NotStored::Data { code })),
            Trouble::Broken(text) => return Err((batch, NotStored::Away(text))),
            Trouble::Away(text) => {
                tracing::warn!(requests = batch.len(), "not committed yet, trying again: {text}");
                tokio::time::sleep(pause.min(until.saturating_duration_since(Instant::now()))).await;
                pause = (pause * 2).min(Duration::from_millis(500));
            }
        }
    }
}

fn still_waiting(waiting: Waiting) -> Option<Waiting> {
    if waiting.answer.is_closed() {
        return None;
    }
    if waiting.until <= Instant::now() {
        let _ = waiting.answer.send(Err(NotStored::Away("the database did not answer in time".to_owned())));
        return None;
    }
    Some(waiting)
}

fn answer(batch: Vec<Waiting>, outcomes: Vec<Committed>) -> bool {
    let mut fresh = false;
    for (waiting, outcome) in batch.into_iter().zip(outcomes) {
        fresh |= matches!(&outcome, Committed::Stored(stored) if stored.iter().any(|one| one.fresh));
        // A sender that hung up gets its answer when it retries.
        let _ = waiting.answer.send(Ok(outcome));
    }
    fresh
}
