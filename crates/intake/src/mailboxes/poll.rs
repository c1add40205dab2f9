//! The queue of mailboxes: any number of servers, with each mailbox read by one at a time.
//!
//! A poll is an item of the queue `polls`. It is never completed: it ends by snoozing until the next poll.

use std::sync::Arc;
use std::time::Duration;

use gleaner::{Claim, Item, Outcome, Progress, Queue};
use gleaner_ingest::Channel;
use gleaner_ingest::providers::gmail::number;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Gmail;
use super::error::{Error, Result};
use super::grant::Grant;
use super::ledger;

/// The most mailboxes that one server reads at the same time.
const AT_ONCE: usize = 8;
/// How long a poll that another process requested may go unnoticed.
const NOTICE: Duration = Duration::from_secs(5);
const INTERVAL_MINUTES: f64 = 5.0;
const LONGEST: Duration = Duration::from_secs(3600);

impl Gmail {
    /// Reads mailboxes when they are due, until `stop` becomes true. `hints` are channels for which a push notification
    /// arrived.
    pub async fn run(self: Arc<Self>, mut hints: mpsc::Receiver<Uuid>, mut stop: watch::Receiver<bool>) {
        let agent = format!("gmail {}", Uuid::now_v7());
        let mut running = JoinSet::new();
        let mut queue = None;
        while !*stop.borrow() {
            let wait = match self.take(&agent, &mut queue, &mut running, &stop).await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::debug!(%error, "could not find mailboxes to read; trying again");
                    NOTICE
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.wanted.notified() => {}
                Some(channel) = hints.recv() => {
                    if let Err(error) = self.request(channel).await {
                        tracing::debug!(%error, "a hint was lost; the poll will find what waits");
                    }
                }
                Some(_) = running.join_next(), if !running.is_empty() => {}
                () = asked(&mut stop) => {}
            }
        }
        // Each task releases its mailbox when it ends.
        while running.join_next().await.is_some() {}
    }

    /// Claims the mailboxes that are due and starts reading them. Returns how long until another is due.
    async fn take(
        self: &Arc<Self>,
        agent: &str,
        queue: &mut Option<Queue>,
        running: &mut JoinSet<()>,
        stop: &watch::Receiver<bool>,
    ) -> Result<Duration> {
        let room = AT_ONCE.saturating_sub(running.len());
        if room == 0 {
            return Ok(NOTICE);
        }
        let queue = match queue {
            Some(queue) => queue.clone(),
            None => queue.insert(Queue::open(&self.pool, "polls").await?).clone(),
        };
        let claimed = queue.claim(&Claim::by(agent).limit(i32::try_from(room).unwrap_or(1))).await?;
        let full = claimed.items.len() == room;
        for item in claimed.items {
            running.spawn(self.clone().work(queue.clone(), item, stop.clone()));
        }
        Ok(if full { Duration::ZERO } else { claimed.next_due_in.unwrap_or(NOTICE).clamp(Duration::from_millis(20), NOTICE) })
    }

    /// Makes one poll, and schedules the next.
    async fn work(self: Arc<Self>, queue: Queue, item: Item, mut stop: watch::Receiver<bool>) {
        let Ok(id) = item.key.parse::<Uuid>() else { return };
        let read = tokio::select! {
            read = self.read_mailbox(id, item.lease) => read,
            () = stay_alive(&queue, &item) => Err(Error::Lost),
            () = asked(&mut stop) => {
                if let Err(error) = queue.release(&[item.held()]).await {
                    tracing::debug!(%error, "a mailbox could not be given back; its lease ends by itself");
                }
                return;
            }
        };
        if matches!(read, Err(Error::Lost)) {
            return;
        }
        if let Err(error) = self.appoint(&queue, &item, id, read).await {
            // The lease expires by itself, and then the mailbox is due.
            tracing::debug!(%error, "could not schedule the next poll");
        }
    }

    /// Reads the mailbox. Google is not called if the channel is paused, or waits for a person.
    async fn read_mailbox(&self, id: Uuid, lease: i64) -> Result<()> {
        let client = self.pool.get().await?;
        ledger::keep_begun(&**client, id, lease).await?;
        let account = ledger::read(&**client, id).await?;
        drop(client);
        let channel = match self.channels.get(&id.to_string()).await {
            Ok(opened) => Arc::new(opened.channel),
            Err(crate::channels::Error::Unknown(_)) => return Err(Error::Lost),
            Err(error) => return Err(Error::Store(error.to_string())),
        };
        let grant = Grant::of(&channel);
        let refused = grant.as_ref().is_some_and(|grant| account.refused_grant.as_deref() == Some(&grant.fingerprint()));
        if !channel.is_active || channel.provider_code != "gmail" || refused {
            return Ok(());
        }
        self.keep_watched(&channel, &account).await;
        let read = match self.read(channel.clone(), &account).await {
            Err(Error::Revoked(why)) => {
                self.tell_revoked(&channel, grant, &why).await?;
                return Err(Error::Revoked(why));
            }
            other => other?,
        };
        let client = self.pool.get().await?;
        ledger::keep_read(&**client, id, lease, &read.history_id, read.mailbox.as_deref(), read.stored).await?;
        if account.needs_reauth {
            ledger::keep_ready(&**client, id).await?;
        }
        tracing::debug!(channel = %channel.name, stored = read.stored, "a mailbox was read");
        Ok(())
    }

    /// Marks the channel and notifies people. Only the first server that finds out does so.
    async fn tell_revoked(&self, channel: &Channel, grant: Option<Grant>, why: &str) -> Result<()> {
        let Some(grant) = grant else { return Ok(()) };
        let detail = Error::Revoked(why.to_owned()).to_string();
        let client = self.pool.get().await?;
        if ledger::keep_refused(&**client, channel, &grant.fingerprint(), &detail).await? {
            tracing::warn!(channel = %channel.name, why, "Google refuses the grant of a mailbox: run `gleaner channels authorize {}`", channel.name);
        }
        Ok(())
    }

    async fn appoint(&self, queue: &Queue, item: &Item, id: Uuid, read: Result<()>) -> Result<()> {
        let mut delay = self.interval(id).await;
        let client = self.pool.get().await?;
        if let Err(error) = &read {
            let failures = ledger::read(&**client, id).await?.failures;
            ledger::keep_failure(&**client, id, item.lease, &error.to_string()).await?;
            delay = after_failure(error, failures, delay);
            if needs_rest(error) {
                tracing::warn!(channel = %id, %error, next_seconds = delay.as_secs(), "a mailbox could not be read");
            }
        }
        ledger::keep_looked(&**client, id, item.lease).await?;
        drop(client);
        queue.snooze(&item.held(), delay).await?;
        // A poll may have been requested while this one was running, perhaps because of what has just changed. After a
        // failure that needs a pause, a request must not shorten the pause.
        if !read.as_ref().is_err_and(needs_rest) {
            let client = self.pool.get().await?;
            if ledger::look_again(&**client, id).await? {
                self.wanted.notify_one();
            }
        }
        Ok(())
    }

    async fn interval(&self, id: Uuid) -> Duration {
        let minutes = match self.channels.get(&id.to_string()).await {
            Ok(opened) => number(&opened.channel, "poll_minutes").unwrap_or(INTERVAL_MINUTES),
            Err(_) => INTERVAL_MINUTES,
        };
        Duration::try_from_secs_f64(minutes * 60.0).unwrap_or(LONGEST).clamp(Duration::from_millis(100), 24 * LONGEST)
    }
}

/// A failure for which an immediate retry does not help.
fn needs_rest(error: &Error) -> bool {
    !matches!(error, Error::Revoked(_) | Error::Unconfigured(_))
}

/// Sooner than usual for a failure that will pass, later for one that retries make worse.
fn after_failure(error: &Error, failures: i32, interval: Duration) -> Duration {
    let doubled = |first: Duration| first.saturating_mul(1 << failures.clamp(0, 10));
    match error {
        Error::Quota(_) | Error::Refused { .. } => doubled(interval).min(LONGEST.max(interval)),
        Error::Unreachable(_) | Error::Store(_) | Error::Database(_) => doubled(Duration::from_secs(15)).min(interval),
        _ => interval,
    }
}

/// Resolves when we must stop.
async fn asked(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped. That is a reason to stop too.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Renews the lease during a long poll. Returns when the lease is lost.
async fn stay_alive(queue: &Queue, item: &Item) {
    let mut pause = item.lease_for / 3;
    loop {
        tokio::time::sleep(pause.max(Duration::from_secs(1))).await;
        match queue.progress(&item.held(), &Progress::default()).await {
            Ok((answer, left)) if answer.outcome == Outcome::Done => pause = left / 3,
            Ok(_) => return,
            Err(error) => tracing::debug!(%error, "could not show life; trying again"),
        }
    }
}
