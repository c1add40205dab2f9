//! The rules of the engine, written a second time and as simply as possible.
//!
//! Times are microseconds since the epoch. The database's clock is known only as a span (before and after the act), so a new time
//! is expected within a span. Once read from the table the exact time is stored, and decides the order of everything after.

use std::collections::BTreeMap;

use super::act::Word;

pub(super) const SECOND: i64 = 1_000_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
/// How long before their due time early claims ask for rows; below zero, after it.
pub(super) const EARLY: [i64; 3] = [3 * MINUTE, 30 * MINUTE, -3 * MINUTE];

/// A time, or a lease, known to be within a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub low: i64,
    pub high: i64,
}

impl Span {
    pub(super) fn exactly(at: i64) -> Self {
        Self { low: at, high: at }
    }

    fn plus(self, more: i64) -> Self {
        Self { low: self.low + more, high: self.high + more }
    }

    fn at_least(self, least: i64) -> Self {
        Self { low: self.low.max(least), high: self.high.max(least) }
    }

    fn at_most(self, most: i64) -> Self {
        Self { low: self.low.min(most), high: self.high.min(most) }
    }

    pub(super) fn holds(self, at: i64) -> bool {
        self.low <= at && at <= self.high
    }
}

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub key: String,
    pub kind: String,
    pub class: i64,
    pub unique: Option<String>,
    pub owner: Option<i64>,
    pub status: Word,
    pub due: Option<Span>,
    /// When any agent may claim it, as stamped on the row: it only affects the order, so it is copied unchecked.
    pub open: Option<i64>,
    pub created: Span,
    pub lease: Span,
    pub deadline: Option<Span>,
    pub attempts: i32,
    pub lost: i32,
    pub started: i16,
    pub agent: Option<String>,
    /// The last holder was a plain writer. All plain writers here share one identity, so any of them may end the work by plain updates.
    pub plain: bool,
    /// How many dead letters it has left.
    pub letters: i64,
}

impl Row {
    pub(super) fn held(&self) -> bool {
        self.status == Word::Running
    }

    pub(super) fn waits(&self) -> bool {
        matches!(self.status, Word::Ready | Word::Failed) && self.due.is_some()
    }

    /// In a status that can be claimed once the row is due.
    pub(super) fn unfinished(&self) -> bool {
        self.waits() || self.held() && self.due.is_some()
    }

    pub(super) fn due_at(&self) -> i64 {
        self.due.map_or(i64::MAX, |d| d.high)
    }

    pub(super) fn take(&mut self, rules: &Rules, now: Span, agent: Option<&str>, started: i16) {
        self.status = Word::Running;
        self.due = Some(now.plus(rules.hold));
        self.deadline = Some(now.plus(rules.deadline(&self.kind)));
        self.lease = now.at_least(self.lease.low + 1);
        self.started = started;
        self.agent = agent.map(str::to_owned);
        self.plain = agent.is_none();
    }

    fn unhold(&mut self) {
        self.deadline = None;
        self.started = 0;
    }

    fn lease_after_own(&mut self) {
        self.lease = self.lease.plus(1);
    }

    fn lease_after_other(&mut self, now: Span) {
        self.lease = now.at_least(self.lease.low + 2);
    }
}

/// What differs between queues.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub owned: bool,
    pub hold: i64,
    pub head_start: i64,
    pub retry_within: Option<i64>,
    pub dead_letters: bool,
}

impl Rules {
    fn deadline(&self, kind: &str) -> i64 {
        match (self.owned, kind) {
            (true, "call") => 120 * MINUTE,
            (true, _) => 30 * MINUTE,
            (false, _) => 60 * MINUTE,
        }
    }
}

const ATTEMPTS: i32 = 3;

/// One answer of an act on one row: key, outcome, status.
pub(super) type Told = (String, &'static str, Option<Word>);

#[derive(Debug, Clone)]
pub(super) struct Model {
    pub rules: Rules,
    pub rows: BTreeMap<String, Row>,
    /// Threshold and whether it shares, by owner.
    pub owners: BTreeMap<i64, (i64, bool)>,
    /// Policies have changed for waiting rows: the order among stale rows is then only approximate.
    pub unsettled: bool,
}

impl Model {
    pub(super) fn new(rules: Rules, owners: BTreeMap<i64, (i64, bool)>) -> Self {
        Self { rules, rows: BTreeMap::new(), owners, unsettled: false }
    }

    /// Moments at which the answer of an act changes, so that no act runs too close to one.
    pub(super) fn boundaries(&self) -> Vec<i64> {
        let mut all = Vec::new();
        for row in self.rows.values().filter(|r| r.unfinished()) {
            all.push(row.due_at());
            all.push(row.due_at() - self.rules.hold / 2);
            for early in EARLY {
                all.push(row.due_at() - early);
                all.extend(row.open.map(|open| open - early));
                all.extend(self.owners.values().map(|(threshold, _)| row.created.high + threshold - early));
                all.extend(self.owners.values().map(|(threshold, _)| row.due_at() + threshold - early));
            }
            all.extend(row.open);
            all.extend(self.owners.values().map(|(threshold, _)| row.created.high + threshold));
            all.extend(self.owners.values().map(|(threshold, _)| row.due_at() + threshold));
            all.extend(self.rules.retry_within.map(|w| row.created.high + w));
        }
        all
    }

    /// Inserted with the status running: the inserter, a plain writer, holds it.
    pub(super) fn born_running(&self, row: &mut Row, now: Span) {
        row.take(&self.rules, now, None, 1);
    }

    pub(super) fn row(&mut self, key: &str) -> &mut Row {
        self.rows.get_mut(key).expect("the row is there")
    }

    /// The row, if this lease still holds it.
    fn held_with(&self, key: &str, lease: i64) -> bool {
        self.rows.get(key).is_some_and(|r| r.held() && r.lease.low == lease)
    }

    fn tell(&self, key: &str, outcome: &'static str) -> Told {
        match self.rows.get(key) {
            Some(row) => (key.to_owned(), outcome, Some(row.status)),
            None => (key.to_owned(), "gone", None),
        }
    }

    pub(super) fn start(&mut self, key: &str, lease: i64) -> Told {
        let held = self.held_with(key, lease);
        if held {
            let row = self.row(key);
            row.started = row.started.max(1);
        }
        self.tell(key, if held { "done" } else { "lost" })
    }

    pub(super) fn progress(&mut self, key: &str, lease: i64, now: Span) -> Told {
        let held = self.held_with(key, lease);
        if held {
            let hold = self.rules.hold;
            let row = self.row(key);
            row.started = 2;
            let due = row.due_at();
            if due - now.high < hold / 2 {
                row.due = Some(now.plus(hold).at_most(row.deadline.map_or(i64::MAX, |d| d.high)).at_least(due));
            }
        }
        self.tell(key, if held { "done" } else { "lost" })
    }

    pub(super) fn complete(&mut self, key: &str, lease: i64) -> Told {
        let held = self.held_with(key, lease);
        let already = self.rows.get(key).is_some_and(|r| r.status == Word::Done && r.lease.low == lease);
        if held {
            let row = self.row(key);
            row.status = Word::Done;
            row.unhold();
        }
        self.tell(
            key,
            if held {
                "done"
            } else if already {
                "already"
            } else {
                "lost"
            },
        )
    }

    /// The holder gives the row back with `attempts` more attempts, due at `due`; `None` makes it dead.
    fn give_back(&mut self, key: &str, lease: i64, now: Span, status: Word, due: Option<Span>, attempts: i32) -> Told {
        let held = self.held_with(key, lease);
        let already = self.rows.get(key).is_some_and(|r| !r.held() && r.lease.low == lease + 1);
        if held {
            match due {
                Some(due) => {
                    let (attempts, lost) = (self.rows[key].attempts + attempts, self.rows[key].lost);
                    self.put_back(key, status, due, now, true, attempts, lost);
                }
                None => {
                    self.row(key).attempts += attempts;
                    self.rest(key, now, true);
                }
            }
        }
        self.tell(
            key,
            if held {
                "done"
            } else if already {
                "already"
            } else {
                "lost"
            },
        )
    }

    pub(super) fn release(&mut self, key: &str, lease: i64, now: Span) -> Told {
        self.give_back(key, lease, now, Word::Ready, Some(now), 0)
    }

    pub(super) fn snooze(&mut self, key: &str, lease: i64, by: i64, now: Span) -> Told {
        self.give_back(key, lease, now, Word::Ready, Some(now.plus(by)), 0)
    }

    /// `backoff` is the delay after a number of attempts; `retry_in` replaces it.
    pub(super) fn fail(
        &mut self,
        key: &str,
        lease: i64,
        retryable: bool,
        retry_in: Option<i64>,
        now: Span,
        backoff: &dyn Fn(&str, i32) -> i64,
    ) -> Told {
        let wait = self
            .rows
            .get(key)
            .filter(|r| retryable && self.may_retry(r, now))
            .map(|r| retry_in.unwrap_or_else(|| backoff(key, r.attempts + 1)));
        self.give_back(key, lease, now, Word::Failed, wait.map(|w| now.plus(w)), 1)
    }

    fn may_retry(&self, row: &Row, now: Span) -> bool {
        row.attempts + 1 < ATTEMPTS && self.rules.retry_within.is_none_or(|within| row.created.high + within > now.high)
    }

    /// Sets the row back to waiting, unless a row with the same unique key waits: then it is superseded.
    #[allow(clippy::too_many_arguments)]
    fn put_back(&mut self, key: &str, status: Word, due: Span, now: Span, own: bool, attempts: i32, lost: i32) {
        let superseded = self.has_waiting_twin(key);
        let row = self.row(key);
        if superseded {
            row.status = Word::Cancelled;
            row.due = None;
        } else {
            row.status = status;
            row.due = Some(due);
            row.attempts = attempts;
            row.lost = lost;
        }
        if own {
            row.lease_after_own();
        } else {
            row.lease_after_other(now);
        }
        row.unhold();
    }

    fn has_waiting_twin(&self, key: &str) -> bool {
        let unique = &self.rows[key].unique;
        unique.is_some() && self.rows.values().any(|r| r.key != key && r.waits() && r.unique == *unique)
    }

    pub(super) fn waiting_twin(&self, unique: &str) -> Option<String> {
        self.rows.values().find(|r| r.waits() && r.unique.as_deref() == Some(unique)).map(|r| r.key.clone())
    }

    /// Dead: the failed status and no next retry.
    pub(super) fn rest(&mut self, key: &str, now: Span, own: bool) {
        let letters = i64::from(self.rules.dead_letters);
        let row = self.row(key);
        row.status = Word::Failed;
        row.due = None;
        row.letters += letters;
        if own {
            row.lease_after_own();
        } else {
            row.lease_after_other(now);
        }
        row.unhold();
    }

    pub(super) fn cancel(&mut self, key: &str, now: Span) -> Told {
        let changes = self.rows.get(key).is_some_and(Row::unfinished);
        if changes {
            let row = self.row(key);
            row.status = Word::Cancelled;
            row.due = None;
            row.lease_after_other(now);
            row.unhold();
        }
        self.tell(key, if changes { "done" } else { "already" })
    }

    pub(super) fn requeue(&mut self, key: &str, now: Span) -> Told {
        let changes = self.rows.get(key).is_some_and(|r| !(r.status == Word::Ready && r.due_at() <= now.high));
        if changes {
            self.put_back(key, Word::Ready, now, now, false, 0, 0);
        }
        self.tell(key, if changes { "done" } else { "already" })
    }

    pub(super) fn bury(&mut self, key: &str, now: Span) -> Told {
        let changes = self.rows.get(key).is_some_and(Row::unfinished);
        if changes {
            self.rest(key, now, false);
        }
        self.tell(key, if changes { "done" } else { "already" })
    }

    pub(super) fn assign(&mut self, key: &str, owner: Option<i64>) -> Told {
        let changes = self.rows.get(key).is_some_and(|r| r.owner != owner);
        if changes {
            self.row(key).owner = owner;
        }
        self.tell(key, if changes { "done" } else { "already" })
    }

    /// The sweep: rows whose lease expired wait again, or are buried. Returns how many.
    pub(super) fn recover(&mut self, now: Span) -> usize {
        let expired: Vec<Row> = self.rows.values().filter(|r| r.held() && r.due_at() <= now.high).cloned().collect();
        let mut expired_keys: Vec<&Row> = expired.iter().collect();
        expired_keys.sort_by_key(|r| key_order(&r.key));
        for row in expired_keys {
            let lost = row.lost + row.lost_now();
            if row.poisoned() {
                self.rest(&row.key, now, false);
                self.row(&row.key).lost = lost;
            } else {
                self.put_back(&row.key, Word::Ready, now, now, false, row.attempts, lost);
            }
        }
        expired.len()
    }

    /// A plain `update … set status = word`, by a program with the same sign-in as every other plain program here.
    pub(super) fn plain(&mut self, key: &str, word: Word, now: Span, backoff: &dyn Fn(&str, i32) -> i64) {
        let row = self.rows[key].clone();
        let (mine, expired) = (row.plain, row.due_at() <= now.high);
        // Writing ready to a row that is already ready has no effect.
        if row.status == word {
            return;
        }
        if row.held() {
            match word {
                // Only its holder completes it. A holder that claimed it by an act must complete it by an act.
                Word::Done if mine => {
                    let row = self.row(key);
                    row.status = Word::Done;
                    row.unhold();
                    return;
                }
                Word::Done => return,
                Word::Failed if !mine && !expired => return,
                _ => {}
            }
        } else if matches!(word, Word::Done | Word::Failed) && matches!(row.status, Word::Ready | Word::Failed | Word::Cancelled) && mine {
            // A late end by its last holder.
            return;
        } else if matches!(row.status, Word::Done | Word::Cancelled) && word == Word::Failed || word == Word::Running && !row.waits() {
            // A finished row cannot fail any more, and a finished or dead row cannot be started.
            return;
        }
        match word {
            Word::Running => {
                let rules = self.rules.clone();
                self.row(key).take(&rules, now, None, 1);
            }
            Word::Ready => {
                let (attempts, lost) = if row.held() && mine { (row.attempts, row.lost) } else { (0, 0) };
                self.put_back(key, Word::Ready, now, now, false, attempts, lost);
            }
            Word::Failed if self.may_retry(&row, now) => {
                let due = now.plus(backoff(key, row.attempts + 1));
                self.put_back(key, Word::Failed, due, now, true, row.attempts + 1, row.lost);
            }
            Word::Failed => {
                self.row(key).attempts += 1;
                self.rest(key, now, true);
            }
            Word::Done | Word::Cancelled => {
                let row = self.row(key);
                row.status = word;
                row.due = None;
                row.lease_after_other(now);
                row.unhold();
            }
        }
    }

    /// Moves all rows and their times back, as if that much time had passed.
    pub(super) fn age(&mut self, by: i64) {
        for row in self.rows.values_mut() {
            row.due = row.due.map(|d| d.plus(-by));
            row.open = row.open.map(|o| o - by);
            row.created = row.created.plus(-by);
            row.deadline = row.deadline.map(|d| d.plus(-by));
        }
    }
}

/// Sorts numbers as numbers, everything else as text.
pub(super) fn key_order(key: &str) -> (i64, String) {
    key.parse().map_or_else(|_| (0, key.to_owned()), |n| (n, String::new()))
}
