//! What happened to the items, as the database itself wrote it down.

use std::collections::BTreeMap;

/// Microseconds since 1970, by the database's clock; leases count in the same unit.
pub(crate) type Micros = i64;

#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// How many items were put in, numbered from one.
    pub items: i64,
    /// What owners allow others.
    pub owners: BTreeMap<i64, Policy>,
    /// Whose work each agent does first.
    pub agents: BTreeMap<String, Option<i64>>,
    /// In the order of a sequence of the database's, which for each item is the order of its commits.
    pub events: Vec<Event>,
    /// Item and lease of what `gleaner.late_result` kept.
    pub late: Vec<(i64, i64)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub shared: bool,
    /// How long an item is its owner's alone.
    pub open_after: Micros,
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub at: Micros,
    pub item: i64,
    pub what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Arrived {
        owner: Option<i64>,
        created: Micros,
        due: Micros,
    },
    Claimed {
        agent: String,
        lease: i64,
        before: Before,
    },
    /// The row became done.
    Completed {
        before: Before,
    },
    /// The row went back in the line: failed, released.
    Returned {
        due: Micros,
        lost: i32,
    },
    /// The row ended otherwise.
    Ended,
    /// What somebody who brought a result under this lease was told.
    Answered {
        lease: i64,
        outcome: String,
    },
}

/// The row before a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    pub running: bool,
    pub lease: i64,
    /// When the line or the hold ended, as the row said.
    pub due: Micros,
}
