//! Which rows a claim finds, in which order, and which it skips.

use super::rules::{Model, Row, Span, key_order};

/// After this many looks at rows that had a holder before, a claim ends with the rows it has.
const ROUNDS: u32 = 4;
const LOST_LEASES: i32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Own,
    Global,
    Stale,
}

/// The arguments of a claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub owner: Option<i64>,
    pub kind: Option<&'a str>,
    pub limit: usize,
    /// Waiting rows count as due this much earlier; below zero, later.
    pub early: i64,
}

/// How a row was held before, if at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    Fresh,
    /// Its holders' leases expired before the work started, this many times.
    Parked(u32),
    /// A holder lost it while it worked on it.
    Begun,
}

impl Past {
    /// How many rows a claim of `limit` may hold with this one among them.
    fn room(self, limit: usize) -> usize {
        match self {
            Self::Fresh | Self::Parked(0 | 1) => limit,
            Self::Parked(n) => (limit >> (n - 1)).max(1),
            Self::Begun => 1,
        }
    }

    fn goes_alone(self, limit: usize) -> bool {
        self == Self::Begun || matches!(self, Self::Parked(n) if n > 1) && self.room(limit) == 1
    }
}

impl Row {
    pub(super) fn past(&self) -> Past {
        if self.lost == 0 && !self.held() {
            Past::Fresh
        } else if self.lost == 0 && self.started <= 0 {
            Past::Parked(u32::from((1 - self.started).unsigned_abs()))
        } else {
            Past::Begun
        }
    }

    /// A lease that ran out on work that had begun.
    pub(super) fn lost_now(&self) -> i32 {
        i32::from(self.held() && self.started >= 1)
    }

    pub(super) fn poisoned(&self) -> bool {
        self.past() == Past::Begun && self.lost + self.lost_now() >= LOST_LEASES
    }
}

/// The state of one claim in progress.
#[derive(Debug, Default)]
struct Taking {
    taken: Vec<String>,
    buried: Vec<String>,
    passed: Vec<String>,
    left: usize,
    tries: u32,
    alone: bool,
}

impl Taking {
    /// Chooses from the rows that one look found. Returns how many.
    fn choose(&mut self, window: &[Row]) -> usize {
        let (before, limit) = (self.taken.len(), self.taken.len() + self.left);
        let mut most = limit;
        for row in window {
            if self.taken.len() >= most {
                break;
            }
            let past = row.past();
            if row.poisoned() {
                self.buried.push(row.key.clone());
            } else if past == Past::Begun && !self.taken.is_empty() || self.taken.len() >= past.room(limit) {
                self.passed.push(row.key.clone());
            } else {
                most = if past == Past::Begun { most } else { most.min(past.room(limit)) };
                self.taken.push(row.key.clone());
                if self.taken.len() == 1 && past.goes_alone(limit) {
                    self.alone = true;
                    break;
                }
            }
        }
        let chosen = self.taken.len() - before;
        if window.iter().any(|r| r.past() != Past::Fresh) {
            self.tries += 25;
        }
        self.tries += u32::from(chosen < window.len().min(most - before));
        self.left = most - self.taken.len();
        chosen
    }
}

impl Model {
    /// The class in which an agent of `owner` may claim the row at `now`, if at all.
    pub(super) fn class(&self, row: &Row, owner: Option<i64>, now: i64) -> Option<Class> {
        self.class_early(row, owner, now, 0)
    }

    fn class_early(&self, row: &Row, owner: Option<i64>, now: i64, early: i64) -> Option<Class> {
        let by = now + early;
        // Early claims apply to rows that wait, never to one that is held.
        let due = row.unfinished() && row.due_at() <= by && (row.due_at() <= now || row.waits());
        match row.owner {
            None => due.then_some(Class::Global),
            Some(o) if Some(o) == owner => due.then_some(Class::Own),
            Some(o) => {
                // Another owner's row is never claimed before it is due.
                let by = by.min(now);
                let (threshold, shared) = self.owners.get(&o).copied()?;
                (due && row.due_at() <= by && shared && row.created.high + threshold <= by).then_some(Class::Stale)
            }
        }
    }

    /// The rows that an agent may claim, class by class, in order.
    fn line(&self, class: Class, asked: Asked<'_>, now: i64) -> Vec<Row> {
        let of_kind = |r: &&Row| asked.kind.is_none_or(|k| r.kind == k);
        let in_class = |r: &&Row| self.class_early(r, asked.owner, now, asked.early) == Some(class);
        let mut line: Vec<Row> = self.rows.values().filter(of_kind).filter(in_class).cloned().collect();
        line.sort_by_key(|r| {
            let at = if class == Class::Stale { r.open.unwrap_or(i64::MAX) } else { r.due_at() };
            (at + r.class * self.rules.head_start, key_order(&r.key))
        });
        line
    }

    /// The keys that a claim at `now` takes, in order, and those it buries.
    pub(super) fn claim_finds(&self, asked: Asked<'_>, now: i64) -> (Vec<String>, Vec<String>) {
        self.claim_reads(asked, now, ROUNDS)
    }

    /// Whether a claim may have ended with these keys because of rows it had to skip. How many rounds that takes depends on how
    /// the rows are split: bulk ranges are read one by one.
    pub(super) fn claim_may_end(&self, asked: Asked<'_>, now: i64, taken: &[String], buried: &[String]) -> bool {
        let (all, all_buried) = self.claim_reads(asked, now, u32::MAX / 25);
        let held_before = self.line(Class::Global, asked, now).iter().filter(|r| r.past() != Past::Fresh).count();
        !(taken.is_empty() && buried.is_empty())
            && all.starts_with(taken)
            && buried.iter().all(|k| all_buried.contains(k))
            // One round may have been used for expired batch leases.
            && held_before + 1 >= ROUNDS as usize
    }

    /// Whether a claim found only rows that are claimable, each once.
    pub(super) fn claim_takes_claimable(&self, asked: Asked<'_>, now: i64, taken: &[String]) -> bool {
        let line = self.line(Class::Global, asked, now);
        let unique: std::collections::BTreeSet<_> = taken.iter().collect();
        unique.len() == taken.len() && taken.len() <= asked.limit && taken.iter().all(|key| line.iter().any(|row| row.key == *key))
    }

    fn claim_reads(&self, asked: Asked<'_>, now: i64, rounds: u32) -> (Vec<String>, Vec<String>) {
        let mut taking = Taking { left: asked.limit, ..Taking::default() };
        for class in [Class::Own, Class::Global, Class::Stale] {
            let line = self.line(class, asked, now);
            while taking.left > 0 && !taking.alone && taking.tries < 25 * rounds {
                let left = taking.left;
                let seen = |r: &&Row| !taking.passed.contains(&r.key) && !taking.taken.contains(&r.key) && !taking.buried.contains(&r.key);
                let window: Vec<Row> = line.iter().filter(seen).take(left).cloned().collect();
                taking.choose(&window);
                if window.len() < left {
                    break;
                }
            }
        }
        (taking.taken, taking.buried)
    }

    /// Whether a claim may have taken these keys and buried those, if policies changed for waiting rows: own and global work
    /// comes first and in order, rows of other owners are taken only if their policy allows it, and no claim is empty while there
    /// is a claimable row.
    pub(super) fn claim_may_find(&self, asked: Asked<'_>, now: i64, taken: &[String], buried: &[String]) -> bool {
        let of_kind = |r: &&Row| asked.kind.is_none_or(|k| r.kind == k);
        let class = |key: &String| self.rows.get(key).filter(of_kind).and_then(|r| self.class_early(r, asked.owner, now, asked.early));
        let mut settled = self.clone();
        settled.rows.retain(|key, _| class(key) != Some(Class::Stale));
        let (first, first_buried) = settled.claim_finds(asked, now);
        let (others, own): (Vec<&String>, Vec<&String>) = taken.iter().partition(|k| class(k) == Some(Class::Stale));
        let alone = own.first().is_some_and(|k| self.rows[*k].past().goes_alone(asked.limit));
        own.iter().copied().eq(first.iter())
            && taken.len() <= asked.limit
            && taken.iter().zip(own.iter()).all(|(a, b)| a == *b)
            && (others.is_empty() || !alone)
            && taken.iter().all(|k| taken.len() <= self.rows[k].past().room(asked.limit))
            && first_buried.iter().all(|k| buried.contains(k))
            && buried.iter().all(|k| class(k).is_some() && self.rows[k].poisoned())
            && (!taken.is_empty()
                || !self
                    .rows
                    .values()
                    .any(|r| class(&r.key) == Some(Class::Stale) && !r.poisoned() && self.long_due(r, now + asked.early.min(0))))
    }

    /// A row that is visible whatever its stamp says: it has been due for as long as its owner asks.
    fn long_due(&self, row: &Row, now: i64) -> bool {
        row.owner.and_then(|o| self.owners.get(&o)).is_some_and(|(threshold, _)| row.due_at() + threshold <= now)
    }

    pub(super) fn claimed(&mut self, keys: &[String], agent: &str, started: bool, limit: usize, now: Span) {
        let alone = keys.len() == 1 && self.rows[&keys[0]].past().goes_alone(limit);
        for key in keys {
            let Some(row) = self.rows.get_mut(key) else { continue };
            let begun = match row.past() {
                _ if started || alone => 1,
                Past::Parked(_) => (row.started - 1).max(-15),
                Past::Fresh | Past::Begun => 0,
            };
            row.lost += row.lost_now();
            row.take(&self.rules, now, Some(agent), begun);
        }
    }

    pub(super) fn buried(&mut self, keys: &[String], now: Span) {
        for key in keys {
            let lost = self.rows[key].lost_now();
            self.rest(key, now, false);
            self.row(key).lost += lost;
        }
    }
}
