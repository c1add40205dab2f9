//! Runs one query for all claims in a group.
//!
//! The rows that a query finds go to the oldest claims. As long as every claim in a query got something, the next query
//! follows at once, for twice as many claims. A query that finds nothing at all is the answer for the whole group. A query
//! in which only some claims got rows proves nothing, because a row may have to be claimed alone, or may be locked. The
//! next query decides.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;
use gleaner::queue::{Claimed, Item};
use gleaner::{Claim, Error, Held};
use tokio::time::{Instant, sleep_until};

use super::empty_cache::{Empty, Query};
use super::groups::{Alike, Groups, MOST_TOGETHER, Waiting};
use super::transaction::begin;

/// The pause between two queries while a row is due but cannot be claimed: the first pause, and the longest.
const PAUSE: Duration = Duration::from_millis(15);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The pause after a query that found nothing, however many notifications arrive: a thousand rows inserted one by one must
/// not cause a thousand queries.
const BREATH: Duration = Duration::from_millis(5);
/// How often a query is tried when it meets a deadlock.
const TRIES: usize = 3;

/// What the task that serves a group goes by.
#[derive(Debug)]
struct Pace {
    /// How many patient claims are in the next query. One by default, because each costs a probe on an empty queue.
    patient: usize,
    /// The number of queries that are made for one claim each. They failed together with an error that only one of them may
    /// have caused.
    apart: usize,
    pause: Duration,
    /// No query before this time.
    breath: Instant,
    /// The number of notifications after which nothing was found, and the time before which no row is expected.
    empty: Option<(u64, Instant)>,
}

impl Pace {
    fn found(&mut self, all: bool) {
        self.patient = if all { (self.patient * 2).min(MOST_TOGETHER) } else { 1 };
        self.pause = PAUSE;
        self.empty = None;
    }

    fn found_nothing(&mut self, notifications: u64, empty: Empty) {
        let (now, until) = (Instant::now(), Instant::from(empty.until));
        // A row that is due and was not claimed is locked by another transaction. Querying without a pause would not unlock
        // it.
        self.pause = if until <= now { (self.pause * 2).min(LONGEST_PAUSE) } else { PAUSE };
        self.patient = 1;
        self.breath = now + BREATH;
        self.empty = Some((notifications, until.max(now + self.pause)));
    }
}

impl Groups {
    /// Serves the group until it is empty.
    pub(super) async fn serve(self, alike: Alike) {
        let Alike { key, queue, .. } = &alike;
        let (listener, empty_cache) = (&self.shared.listener, &self.shared.empty_cache);
        let mut pace = Pace { patient: 1, apart: 0, pause: PAUSE, breath: Instant::now(), empty: None };
        if let Some(empty) = empty_cache.remembered(key) {
            pace.empty = Some((empty.notifications, empty.until.into()));
        }
        loop {
            sleep_until(pace.breath).await;
            // Count the notifications before the query: rows that it does not find may have been inserted after this.
            let query = empty_cache.begin_query(queue, listener.count(queue));
            let next = pace
                .empty
                .filter(|(notifications, next)| *notifications == query.notifications && *next > Instant::now())
                .map(|(_, next)| next);
            let (together, alike, came) = {
                let mut groups = self.lock();
                let Some(group) = groups.get_mut(key) else { return };
                if group.is_empty() {
                    groups.remove(key);
                    return;
                }
                let most = if pace.apart > 0 { 1 } else { MOST_TOGETHER };
                (group.take(next.is_some(), pace.patient, most), group.alike.clone(), group.came.clone())
            };
            if !together.is_empty() {
                pace.apart = pace.apart.saturating_sub(1);
                self.query(&mut pace, query, &alike, together).await;
                continue;
            }
            tokio::select! {
                _ = listener.notified(queue, query.notifications) => pace.pause = PAUSE,
                () = sleep_until(next.unwrap_or(pace.breath)) => {}
                () = came.notified() => {}
            }
        }
    }

    /// Makes one query and answers its claims.
    async fn query(&self, pace: &mut Pace, query: Query, alike: &Alike, together: BTreeMap<u64, Waiting>) {
        let claims: Vec<Claim> = together.values().map(|waiting| waiting.pending.claim.clone()).collect();
        // A panic would leave a group without a task to serve it.
        let asked = AssertUnwindSafe(self.claim_all(alike, &claims)).catch_unwind().await;
        match asked.unwrap_or_else(|_| Err(Error::Other("internal error: the claim panicked".into()))) {
            Ok(all) => {
                let next_due_in = all.first().and_then(|claimed| claimed.next_due_in);
                let (mut in_vain, mut unheard, mut served) = (Vec::new(), Vec::new(), 0);
                for ((ticket, mut waiting), claimed) in together.into_iter().zip(all) {
                    (waiting.pending.repeats, waiting.pending.known_empty) = (false, true);
                    if claimed.items.is_empty() {
                        in_vain.push((ticket, waiting));
                        continue;
                    }
                    served += 1;
                    if let Err(Ok(claimed)) = waiting.answer(Ok(claimed)) {
                        unheard.extend(claimed.items);
                    }
                }
                if !unheard.is_empty() {
                    tokio::spawn(self.clone().give_back(alike.clone(), unheard));
                }
                let empty = (served == 0).then(|| self.shared.empty_cache.remember(alike.key, query, next_due_in));
                match empty {
                    Some(empty) => pace.found_nothing(query.notifications, empty),
                    None => pace.found(in_vain.is_empty()),
                }
                let mut groups = self.lock();
                let Some(group) = groups.get_mut(&alike.key) else { return };
                in_vain.into_iter().for_each(|(ticket, waiting)| group.put(ticket, waiting));
                if let Some(empty) = empty {
                    group.nothing_found(query.notifications, empty);
                }
            }
            Err(error) if together.len() > 1 && !error.is_transient() => {
                pace.apart = together.len();
                let mut groups = self.lock();
                let Some(group) = groups.get_mut(&alike.key) else { return };
                together.into_iter().for_each(|(ticket, waiting)| group.put(ticket, waiting));
            }
            Err(error) => {
                let mut refused = together;
                if error.is_transient()
                    && let Some(group) = self.lock().get_mut(&alike.key)
                {
                    // The other claims would get the same error, one after the other.
                    refused.append(&mut group.new);
                    refused.append(&mut group.patient);
                }
                let error = Arc::new(error);
                for waiting in refused.into_values() {
                    // A client that has left needs no answer.
                    let _ = waiting.answer(Err(error.clone()));
                }
            }
        }
    }

    async fn claim_all(&self, alike: &Alike, claims: &[Claim]) -> Result<Vec<Claimed>, Error> {
        let mut tries = 1;
        loop {
            self.shared.queries.fetch_add(1, Ordering::Relaxed);
            let mut client = self.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
            let asked = async {
                let transaction = begin(&mut client, &alike.caller).await?;
                let all = alike.acts.claim_many(&*transaction, claims).await?;
                transaction.commit().await.map_err(Error::doing("commit the claim"))?;
                Ok::<_, Error>(all)
            };
            match asked.await {
                Err(error) if tries < TRIES && error.code().is_some_and(|code| matches!(code.code(), "40P01" | "40001")) => tries += 1,
                other => return other,
            }
        }
    }

    /// Releases the rows of a client that left while its claim was made, so that they need not wait for their leases to
    /// end.
    pub(super) async fn give_back(self, alike: Alike, items: Vec<Item>) {
        let held: Vec<Held> = items.iter().map(|item| item.held()).collect();
        let given_back = async {
            let mut client = self.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
            let transaction = begin(&mut client, &alike.caller).await?;
            alike.acts.release(&*transaction, &held).await?;
            transaction.commit().await.map_err(Error::doing("commit the release"))
        };
        match given_back.await {
            Ok(()) => self.shared.listener.record(&alike.queue),
            Err(error) => tracing::debug!(%error, "rows of a client that left wait for their leases to end"),
        }
    }
}
