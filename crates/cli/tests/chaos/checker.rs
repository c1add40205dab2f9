//! Says of a history whether the promises were kept. Pure: it knows no database and no clock.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::history::{History, Micros, What};

/// An item that was in line for so long before and after a claim was there to be had: neither just being written, nor just being
/// claimed by somebody else.
const SURELY: Micros = 2_000_000;

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    Lost {
        item: i64,
        why: &'static str,
    },
    Doubled {
        item: i64,
    },
    /// A result was accepted from somebody who did not hold the item, or whose lease had passed on.
    StaleAccepted {
        item: i64,
        lease: i64,
    },
    /// A result was refused though its lease stood.
    HolderRefused {
        item: i64,
        lease: i64,
    },
    /// A result came under a lease that nobody was given.
    UnknownLease {
        item: i64,
        lease: i64,
    },
    /// Taken from a holder whose hold had not ended.
    TakenFromHolder {
        item: i64,
        early_by: Micros,
    },
    /// Claimed after it was done.
    Reopened {
        item: i64,
    },
    LeaseNotNew {
        item: i64,
        lease: i64,
    },
    /// Somebody else's, taken before its owner's threshold.
    TakenEarly {
        item: i64,
        agent: String,
        early_by: Micros,
    },
    /// Somebody else's, who shares nothing.
    TakenPrivate {
        item: i64,
        agent: String,
    },
    /// Something less urgent was taken while this waited.
    PassedOver {
        item: i64,
        agent: String,
        for_item: i64,
        class: Class,
    },
    /// A refused result was not kept as evidence exactly once, or one was kept that nobody refused.
    Evidence {
        item: i64,
        lease: i64,
        refused: usize,
        kept: usize,
    },
}

/// Whose item, as an agent sees it; in the order in which agents take them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    Own,
    Global,
    Stale,
}

/// What was found, and what there was to be found in.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub violations: Vec<Violation>,
    pub claims: BTreeMap<Class, usize>,
    /// Claims of items that somebody had held until then.
    pub takeovers: usize,
    pub accepted: usize,
    pub refused: usize,
    /// Results that were brought again because the answer had been lost.
    pub repeated: usize,
}

#[derive(Debug, Default)]
struct Item {
    owner: Option<i64>,
    created: Micros,
    /// In line since then; none while held, and none where it lost a holder: such items travel alone, and so are passed over at times.
    waits: Option<Micros>,
    /// The lease that stands.
    lease: Option<i64>,
    given: Vec<i64>,
    done: bool,
    accepted: Option<i64>,
}

struct Taken {
    at: Micros,
    agent: String,
    owner: Option<i64>,
    item: i64,
    class: Class,
}

/// An item in line.
struct Wait {
    item: i64,
    owner: Option<i64>,
    from: Micros,
    to: Micros,
}

#[derive(Default)]
struct Checker {
    verdict: Verdict,
    items: BTreeMap<i64, Item>,
    taken: Vec<Taken>,
    waits: Vec<Wait>,
    refused: HashMap<(i64, i64), usize>,
}

pub(crate) fn check(history: &History) -> Verdict {
    let mut checker = Checker::default();
    for event in &history.events {
        let (at, id) = (event.at, event.item);
        match &event.what {
            What::Arrived { owner, created, due } => {
                let item = Item { owner: *owner, created: *created, waits: Some(at.max(*due)), ..Item::default() };
                checker.items.insert(id, item);
            }
            What::Claimed { .. } => checker.claimed(history, at, id, &event.what),
            What::Completed { before } => {
                let item = checker.items.entry(id).or_default();
                if item.done {
                    checker.verdict.violations.push(Violation::Doubled { item: id });
                } else if !before.running || item.lease != Some(before.lease) {
                    checker.verdict.violations.push(Violation::StaleAccepted { item: id, lease: before.lease });
                }
                item.done = true;
            }
            What::Returned { due, lost } => {
                let item = checker.items.entry(id).or_default();
                (item.lease, item.waits) = (None, (*lost == 0).then_some(at.max(*due)));
            }
            What::Ended => {
                checker.items.entry(id).or_default().lease = None;
                checker.verdict.violations.push(Violation::Lost { item: id, why: "it was given up" });
            }
            What::Answered { lease, outcome } => checker.answered(id, *lease, outcome),
        }
    }
    checker.all_done(history.items);
    checker.evidence(history);
    checker.order();
    checker.verdict
}

impl Checker {
    fn claimed(&mut self, history: &History, at: Micros, id: i64, what: &What) {
        let What::Claimed { agent, lease, before } = what else { return };
        let (item, verdict) = (self.items.entry(id).or_default(), &mut self.verdict);
        // A lease is the time of its claim; the row was changed a moment later.
        let asked = at.min(*lease);
        if item.done {
            verdict.violations.push(Violation::Reopened { item: id });
        }
        if item.given.last().is_some_and(|last| last >= lease) {
            verdict.violations.push(Violation::LeaseNotNew { item: id, lease: *lease });
        }
        if before.running {
            verdict.takeovers += 1;
            if asked < before.due {
                verdict.violations.push(Violation::TakenFromHolder { item: id, early_by: before.due - asked });
            }
        }
        let owner = history.agents.get(agent).copied().flatten();
        let class = match item.owner {
            None => Class::Global,
            mine if mine == owner => Class::Own,
            Some(other) => {
                match history.owners.get(&other) {
                    Some(policy) if policy.shared => {
                        let open = item.created + policy.open_after;
                        if asked < open {
                            verdict.violations.push(Violation::TakenEarly { item: id, agent: agent.clone(), early_by: open - asked });
                        }
                    }
                    _ => verdict.violations.push(Violation::TakenPrivate { item: id, agent: agent.clone() }),
                }
                Class::Stale
            }
        };
        *verdict.claims.entry(class).or_default() += 1;
        self.taken.push(Taken { at: asked, agent: agent.clone(), owner, item: id, class });
        if let Some(from) = item.waits.take() {
            self.waits.push(Wait { item: id, owner: item.owner, from, to: asked });
        }
        item.lease = Some(*lease);
        item.given.push(*lease);
    }

    fn answered(&mut self, id: i64, lease: i64, outcome: &str) {
        let (item, verdict) = (self.items.entry(id).or_default(), &mut self.verdict);
        if !item.given.contains(&lease) {
            verdict.violations.push(Violation::UnknownLease { item: id, lease });
            return;
        }
        match outcome {
            "done" => {
                verdict.accepted += 1;
                if item.accepted.replace(lease).is_some() {
                    verdict.violations.push(Violation::Doubled { item: id });
                }
                if item.lease != Some(lease) {
                    verdict.violations.push(Violation::StaleAccepted { item: id, lease });
                }
            }
            "already" => {
                verdict.repeated += 1;
                if item.accepted != Some(lease) {
                    verdict.violations.push(Violation::StaleAccepted { item: id, lease });
                }
            }
            _ => {
                verdict.refused += 1;
                *self.refused.entry((id, lease)).or_default() += 1;
                if item.lease == Some(lease) || item.accepted == Some(lease) {
                    verdict.violations.push(Violation::HolderRefused { item: id, lease });
                }
            }
        }
    }

    fn all_done(&mut self, items: i64) {
        for id in 1..=items {
            let why = match self.items.get(&id) {
                None => Some("it never arrived"),
                Some(item) if !item.done => Some("it is not done"),
                Some(item) if item.accepted.is_none() => Some("it is done, and nobody's result was accepted"),
                Some(_) => None,
            };
            self.verdict.violations.extend(why.map(|why| Violation::Lost { item: id, why }));
        }
    }

    fn evidence(&mut self, history: &History) {
        let mut kept: HashMap<(i64, i64), usize> = HashMap::new();
        for late in &history.late {
            *kept.entry(*late).or_default() += 1;
        }
        let mut all: Vec<(i64, i64)> = kept.keys().chain(self.refused.keys()).copied().collect();
        all.sort_unstable();
        all.dedup();
        for (item, lease) in all {
            let count = |of: &HashMap<(i64, i64), usize>| of.get(&(item, lease)).copied().unwrap_or(0);
            let (refused, kept) = (count(&self.refused), count(&kept));
            // An agent that did not hear the refusal brings its result again; the second time adds nothing.
            if kept != refused.min(1) {
                self.verdict.violations.push(Violation::Evidence { item, lease, refused, kept });
            }
        }
    }

    /// Own before nobody's, nobody's before others'.
    fn order(&mut self) {
        self.waits.retain(|wait| wait.to - wait.from >= 2 * SURELY);
        for taken in self.taken.iter().filter(|taken| taken.class != Class::Own) {
            let first = self.waits.iter().find(|wait| {
                let class = match wait.owner {
                    None => Class::Global,
                    mine if mine == taken.owner => Class::Own,
                    Some(_) => Class::Stale,
                };
                class < taken.class && wait.from + SURELY <= taken.at && taken.at + SURELY <= wait.to
            });
            if let Some(wait) = first {
                self.verdict.violations.push(Violation::PassedOver {
                    item: wait.item,
                    agent: taken.agent.clone(),
                    for_item: taken.item,
                    class: taken.class,
                });
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claims: Vec<String> = self.claims.iter().map(|(class, count)| format!("{count} {class:?}")).collect();
        write!(
            f,
            "claims: {}; {} taken over, {} results accepted, {} refused, {} repeated; {} violations",
            claims.join(", "),
            self.takeovers,
            self.accepted,
            self.refused,
            self.repeated,
            self.violations.len()
        )?;
        self.violations.iter().take(20).try_for_each(|violation| write!(f, "\n  {violation:?}"))
    }
}

#[cfg(test)]
mod tests;
