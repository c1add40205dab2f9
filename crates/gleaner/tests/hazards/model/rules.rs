//! The rules of DESIGN.md, written down a second time and as plainly as possible.
//!
//! Times are microseconds since the epoch. The database's clock is known only as a span (before and after the act), so a new
//! time is expected somewhere in a span; once seen in the table it is taken over, exact, and decides the order of everything after.

use std::collections::BTreeMap;

use super::act::Word;

pub const SECOND: i64 = 1_000_000;
pub const MINUTE: i64 = 60 * SECOND;

/// A time, or a lease, known to lie somewhere in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub low: i64,
    pub high: i64,
}

impl Span {
    pub fn exactly(at: i64) -> Self {
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

    pub fn holds(self, at: i64) -> bool {
        self.low <= at && at <= self.high
    }
}

#[derive(Debug, Clone)]
pub struct Row {
    pub key: String,
    pub kind: String,
    pub class: i64,
    pub unique: Option<String>,
    pub owner: Option<i64>,
    pub status: Word,
    pub due: Option<Span>,
    /// When anybody may take it, as stamped on the row: it only orders the line, so it is taken over unchecked.
    pub open: Option<i64>,
    pub created: Span,
    pub lease: Span,
    pub deadline: Option<Span>,
    pub attempts: i32,
    pub lost: i32,
    pub started: i16,
    pub agent: Option<String>,
    /// The last holder was a plain writer, and all plain writers here are one: it may end the work by plain updates.
    pub plain: bool,
    /// Dead letters it has left.
    pub letters: i64,
}

impl Row {
    pub fn held(&self) -> bool {
        self.status == Word::Running
    }

    fn waits(&self) -> bool {
        matches!(self.status, Word::Ready | Word::Failed) && self.due.is_some()
    }

    /// In a status that can be claimed once its time has come.
    pub fn unfinished(&self) -> bool {
        self.waits() || self.held() && self.due.is_some()
    }

    fn due_at(&self) -> i64 {
        self.due.map_or(i64::MAX, |d| d.high)
    }

    fn take(&mut self, rules: &Rules, now: Span, agent: Option<&str>, started: i16) {
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
pub struct Rules {
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
const ROUNDS: usize = 4;
const LOST_LEASES: i32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Own,
    Global,
    Stale,
}

/// One answer of an act on one row: key, outcome, status word.
pub type Told = (String, &'static str, Option<Word>);

#[derive(Debug, Clone)]
pub struct Model {
    pub rules: Rules,
    pub rows: BTreeMap<String, Row>,
    /// Threshold and whether it shares, by owner.
    pub owners: BTreeMap<i64, (i64, bool)>,
    /// Policies have changed under waiting rows: the order among stale rows is then only approximate.
    pub unsettled: bool,
}

impl Model {
    pub fn new(rules: Rules, owners: BTreeMap<i64, (i64, bool)>) -> Self {
        Self { rules, rows: BTreeMap::new(), owners, unsettled: false }
    }

    /// In which class an agent of `owner` may take the row at `now`, if at all.
    pub fn class(&self, row: &Row, owner: Option<i64>, now: i64) -> Option<Class> {
        if !row.unfinished() || row.due_at() > now {
            return None;
        }
        match row.owner {
            None => Some(Class::Global),
            Some(o) if Some(o) == owner => Some(Class::Own),
            Some(o) => {
                let (threshold, shared) = self.owners.get(&o).copied()?;
                (shared && row.created.high + threshold <= now).then_some(Class::Stale)
            }
        }
    }

    /// Moments at which the answer to a question changes, so that nobody asks too close to one.
    pub fn boundaries(&self) -> Vec<i64> {
        let mut all = Vec::new();
        for row in self.rows.values().filter(|r| r.unfinished()) {
            all.push(row.due_at());
            all.push(row.due_at() - self.rules.hold / 2);
            all.extend(row.open);
            all.extend(self.owners.values().map(|(threshold, _)| row.created.high + threshold));
            all.extend(self.owners.values().map(|(threshold, _)| row.due_at() + threshold));
            all.extend(self.rules.retry_within.map(|w| row.created.high + w));
        }
        all
    }

    /// What an agent finds in front of it, class by class, in order.
    fn line(&self, class: Class, owner: Option<i64>, kind: Option<&str>, now: i64) -> Vec<Row> {
        let mut line: Vec<Row> =
            self.rows.values().filter(|r| kind.is_none_or(|k| r.kind == k) && self.class(r, owner, now) == Some(class)).cloned().collect();
        line.sort_by_key(|r| {
            let at = if class == Class::Stale { r.open.unwrap_or(i64::MAX) } else { r.due_at() };
            (at + r.class * self.rules.head_start, key_order(&r.key))
        });
        line
    }

    /// The keys a claim at `now` takes, in order, and those it buries on the way.
    pub fn claim_finds(&self, owner: Option<i64>, kind: Option<&str>, limit: usize, now: i64) -> (Vec<String>, Vec<String>) {
        self.claim_reads(owner, kind, limit, now, ROUNDS)
    }

    /// Whether a claim may have ended with these keys because of what it had to step over. How many rounds that takes depends on how
    /// the line is cut: swaths are looked at one by one.
    pub fn claim_may_end(&self, kind: Option<&str>, limit: usize, now: i64, taken: &[String], buried: &[String]) -> bool {
        let (all, all_buried) = self.claim_reads(None, kind, limit, now, usize::MAX);
        let stepped_over = self.line(Class::Global, None, kind, now).iter().filter(|r| odd(r) && !poisoned(r)).count();
        !taken.is_empty() && all.starts_with(taken) && buried.iter().all(|k| all_buried.contains(k)) && stepped_over >= ROUNDS
    }

    fn claim_reads(&self, owner: Option<i64>, kind: Option<&str>, limit: usize, now: i64, most: usize) -> (Vec<String>, Vec<String>) {
        let (mut taken, mut buried, mut passed) = (Vec::new(), Vec::new(), Vec::new());
        for class in [Class::Own, Class::Global, Class::Stale] {
            let mut rounds = 0;
            loop {
                let left = limit - taken.len();
                let window: Vec<Row> = self
                    .line(class, owner, kind, now)
                    .into_iter()
                    .filter(|r| !passed.contains(&r.key) && !taken.contains(&r.key) && !buried.contains(&r.key))
                    .take(left)
                    .collect();
                let (before, stepped_over) = (buried.len(), passed.len());
                let mut fine = Vec::new();
                for row in &window {
                    if !row.held() && row.lost == 0 {
                        fine.push(row.key.clone());
                    } else if poisoned(row) {
                        buried.push(row.key.clone());
                    } else if taken.is_empty() && fine.is_empty() {
                        // A row that lost a lease travels alone.
                        return (vec![row.key.clone()], buried);
                    } else {
                        passed.push(row.key.clone());
                    }
                }
                taken.extend(fine);
                if taken.len() == limit {
                    return (taken, buried);
                }
                // Whoever was buried or stepped over leaves a place, and the next of the same class gets it.
                if buried.len() == before {
                    if passed.len() == stepped_over {
                        break;
                    }
                    rounds += 1;
                    if rounds == most {
                        return (taken, buried);
                    }
                }
            }
        }
        (taken, buried)
    }

    /// Whether a claim may have taken these keys and buried those, where policies changed under waiting rows: own and global work
    /// comes first and in order, what is taken from others is theirs to give, and nobody is sent away while there is something.
    pub fn claim_may_find(
        &self,
        owner: Option<i64>,
        kind: Option<&str>,
        limit: usize,
        now: i64,
        taken: &[String],
        buried: &[String],
    ) -> bool {
        let class = |key: &String| self.rows.get(key).filter(|r| kind.is_none_or(|k| r.kind == k)).and_then(|r| self.class(r, owner, now));
        let mut settled = self.clone();
        settled.rows.retain(|key, _| class(key) != Some(Class::Stale));
        let (first, first_buried) = settled.claim_finds(owner, kind, limit, now);
        let (others, own): (Vec<&String>, Vec<&String>) = taken.iter().partition(|k| class(k) == Some(Class::Stale));
        let alone = own.first().is_some_and(|k| odd(&self.rows[*k]));
        own.iter().copied().eq(first.iter())
            && taken.len() <= limit
            && taken.iter().zip(own.iter()).all(|(a, b)| a == *b)
            && (others.is_empty() || !alone)
            && (taken.len() == 1 || !taken.iter().any(|k| odd(&self.rows[k])))
            && first_buried.iter().all(|k| buried.contains(k))
            && buried.iter().all(|k| class(k).is_some() && poisoned(&self.rows[k]))
            && (!taken.is_empty()
                || !self.rows.values().any(|r| class(&r.key) == Some(Class::Stale) && !poisoned(r) && self.long_due(r, now)))
    }

    /// A row that no stamp can hide: it has been due for as long as its owner asks.
    fn long_due(&self, row: &Row, now: i64) -> bool {
        row.owner.and_then(|o| self.owners.get(&o)).is_some_and(|(threshold, _)| row.due_at() + threshold <= now)
    }

    pub fn claimed(&mut self, keys: &[String], agent: &str, started: bool, now: Span) {
        let alone = keys.len() == 1 && odd(&self.rows[&keys[0]]);
        for key in keys {
            let Some(row) = self.rows.get_mut(key) else { continue };
            row.lost += lost_now(row);
            row.take(&self.rules, now, Some(agent), i16::from(started || alone));
        }
    }

    pub fn buried(&mut self, keys: &[String], now: Span) {
        for key in keys {
            let lost = lost_now(&self.rows[key]);
            self.rest(key, now, false);
            self.row(key).lost += lost;
        }
    }

    /// Inserted as being worked on: the inserter, a plain writer, holds it.
    pub fn born_running(&self, row: &mut Row, now: Span) {
        row.take(&self.rules, now, None, 1);
    }

    pub fn row(&mut self, key: &str) -> &mut Row {
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

    pub fn start(&mut self, key: &str, lease: i64) -> Told {
        let held = self.held_with(key, lease);
        if held {
            let row = self.row(key);
            row.started = row.started.max(1);
        }
        self.tell(key, if held { "done" } else { "lost" })
    }

    pub fn progress(&mut self, key: &str, lease: i64, now: Span) -> Told {
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

    pub fn complete(&mut self, key: &str, lease: i64) -> Told {
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

    /// The holder gives the row back: `attempts` more of them, due at `due`; none when it is to be dead.
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

    pub fn release(&mut self, key: &str, lease: i64, now: Span) -> Told {
        self.give_back(key, lease, now, Word::Ready, Some(now), 0)
    }

    pub fn snooze(&mut self, key: &str, lease: i64, by: i64, now: Span) -> Told {
        self.give_back(key, lease, now, Word::Ready, Some(now.plus(by)), 0)
    }

    /// `backoff` is the wait after so many attempts; `retry_in` instead of it.
    pub fn fail(
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

    /// Back in the line, unless a twin waits there: then it has been superseded.
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

    pub fn waiting_twin(&self, unique: &str) -> Option<String> {
        self.rows.values().find(|r| r.waits() && r.unique.as_deref() == Some(unique)).map(|r| r.key.clone())
    }

    /// Dead: the failed word and no next try.
    fn rest(&mut self, key: &str, now: Span, own: bool) {
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

    pub fn cancel(&mut self, key: &str, now: Span) -> Told {
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

    pub fn requeue(&mut self, key: &str, now: Span) -> Told {
        let changes = self.rows.get(key).is_some_and(|r| !(r.status == Word::Ready && r.due_at() <= now.high));
        if changes {
            self.put_back(key, Word::Ready, now, now, false, 0, 0);
        }
        self.tell(key, if changes { "done" } else { "already" })
    }

    pub fn bury(&mut self, key: &str, now: Span) -> Told {
        let changes = self.rows.get(key).is_some_and(Row::unfinished);
        if changes {
            self.rest(key, now, false);
        }
        self.tell(key, if changes { "done" } else { "already" })
    }

    pub fn assign(&mut self, key: &str, owner: Option<i64>) -> Told {
        let changes = self.rows.get(key).is_some_and(|r| r.owner != owner);
        if changes {
            self.row(key).owner = owner;
        }
        self.tell(key, if changes { "done" } else { "already" })
    }

    /// The sweep: rows whose lease ran out wait again, or are buried. How many.
    pub fn recover(&mut self, now: Span) -> usize {
        let expired: Vec<Row> = self.rows.values().filter(|r| r.held() && r.due_at() <= now.high).cloned().collect();
        let mut expired_keys: Vec<&Row> = expired.iter().collect();
        expired_keys.sort_by_key(|r| key_order(&r.key));
        for row in expired_keys {
            let lost = row.lost + lost_now(row);
            if lost >= LOST_LEASES {
                self.rest(&row.key, now, false);
                self.row(&row.key).lost = lost;
            } else {
                self.put_back(&row.key, Word::Ready, now, now, false, row.attempts, lost);
            }
        }
        expired.len()
    }

    /// A plain `update … set status = word`, by a program signed in as every other plain program here.
    pub fn plain(&mut self, key: &str, word: Word, now: Span, backoff: &dyn Fn(&str, i32) -> i64) {
        let row = self.rows[key].clone();
        let (mine, expired) = (row.plain, row.due_at() <= now.high);
        // To write ready over a row that says ready says nothing.
        if row.status == word {
            return;
        }
        if row.held() {
            match word {
                // Only its holder completes; one who took it by an act completes it by an act.
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
            // A late end by the one who held it last.
            return;
        } else if matches!(row.status, Word::Done | Word::Cancelled) && word == Word::Failed || word == Word::Running && !row.waits() {
            // What is finished does not fail any more, and what is finished or dead is not begun.
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

    /// All rows and their times move back, as if that much time had passed.
    pub fn age(&mut self, by: i64) {
        for row in self.rows.values_mut() {
            row.due = row.due.map(|d| d.plus(-by));
            row.open = row.open.map(|o| o - by);
            row.created = row.created.plus(-by);
            row.deadline = row.deadline.map(|d| d.plus(-by));
        }
    }
}

fn odd(row: &Row) -> bool {
    row.held() || row.lost > 0
}

/// A lease that ran out on work that had begun.
fn lost_now(row: &Row) -> i32 {
    i32::from(row.held() && row.started >= 1)
}

fn poisoned(row: &Row) -> bool {
    odd(row) && row.lost + lost_now(row) >= LOST_LEASES
}

/// Numbers as numbers, everything else as it is written.
pub fn key_order(key: &str) -> (i64, String) {
    key.parse().map_or_else(|_| (0, key.to_owned()), |n| (n, String::new()))
}
