//! What agents, people and programs may do to a queue, in any order.

use proptest::prelude::*;

/// Rows, tickets (key and lease as an agent once got them), agents and owners are numbers taken modulo what exists, so that a
/// shortened list of acts is still valid.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Enqueue {
        kind: u8,
        class: u8,
        unique: Option<u8>,
        owner: u8,
        replace: bool,
        delay_minutes: u8,
    },
    /// Several similar items, by COPY: in a queue with batch leases they are in a bulk range.
    Copy {
        kind: u8,
        class: u8,
        count: u8,
    },
    /// A plain insert with an explicit key: after a delete the same key is inserted again.
    Insert {
        slot: u8,
        kind: u8,
        class: u8,
        unique: Option<u8>,
        owner: u8,
        born: Born,
        age_minutes: u8,
    },
    Delete {
        row: u8,
    },
    Claim {
        agent: u8,
        limit: u8,
        owner: u8,
        kind: Option<u8>,
        started: bool,
    },
    /// The answer of the last claim was lost: the claim is repeated.
    ClaimAgain,
    /// Claims before rows are due; below zero: only rows that have been due for that long. For a signed-in caller a positive time
    /// is ignored.
    ClaimEarly {
        limit: u8,
        owner: u8,
        minutes: i8,
        signed_in: bool,
    },
    /// One agent claims everything, batch by batch; then the transaction is rolled back.
    Drain {
        owner: u8,
        limit: u8,
    },
    Start {
        tickets: Vec<u8>,
    },
    Progress {
        ticket: u8,
    },
    Complete {
        tickets: Vec<u8>,
    },
    Fail {
        ticket: u8,
        retryable: bool,
        retry_minutes: Option<u8>,
    },
    Release {
        tickets: Vec<u8>,
    },
    Snooze {
        ticket: u8,
        minutes: u8,
    },
    Cancel {
        rows: Vec<u8>,
    },
    Requeue {
        rows: Vec<u8>,
    },
    Bury {
        rows: Vec<u8>,
    },
    Assign {
        rows: Vec<u8>,
        owner: u8,
    },
    Recover,
    /// A plain update, by a program that does not call acts.
    Plain {
        row: u8,
        word: Word,
    },
    /// A client writes back a whole row it read long ago.
    WriteBack {
        row: u8,
    },
    Age {
        minutes: u8,
    },
    /// Rows, batch leases and bulk ranges are copied.
    Backup,
    /// They are restored to the last copy.
    Restore,
    Policy {
        owner: u8,
        threshold_minutes: u8,
        shared: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Born {
    Ready,
    Running,
    Done,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Word {
    Ready,
    Running,
    Done,
    Failed,
    Cancelled,
}

/// Fewer than a handful of each, or the acts would never collide.
pub(super) fn common_acts(owned: bool) -> BoxedStrategy<Act> {
    let unique = if owned { Just(None).boxed() } else { prop_oneof![2 => Just(None), 3 => (0..2u8).prop_map(Some)].boxed() };
    let some = || prop::collection::vec(any::<u8>(), 1..4);
    let any_way = prop_oneof![6 => Just(Born::Ready), 1 => Just(Born::Running), 1 => Just(Born::Done), 1 => Just(Born::Failed)];
    // Rows of the built-in queue are always inserted as ready: it has no adapter to interpret another status.
    let born = if owned { any_way.boxed() } else { Just(Born::Ready).boxed() };
    let word = prop_oneof![
        3 => Just(Word::Done), 3 => Just(Word::Failed), 2 => Just(Word::Ready), 2 => Just(Word::Running), 1 => Just(Word::Cancelled)
    ];
    let delay = prop_oneof![4 => Just(0u8), 1 => 1..20u8];
    let age = prop_oneof![1 => Just(0u8), 1 => 1..30u8];
    let passing = prop_oneof![3 => 1..3u8, 3 => Just(6u8), 2 => Just(20u8), 1 => Just(121u8), 1 => Just(250u8)];
    let agents = 0..3u8;
    let owners = 0..4u8;
    let kind = 0..2u8;
    let class = 0..4u8;
    prop_oneof![
        6 => (kind.clone(), class.clone(), unique.clone(), owners.clone(), any::<bool>(), delay)
            .prop_map(|(kind, class, unique, owner, replace, delay_minutes)| Act::Enqueue { kind, class, unique, owner, replace, delay_minutes }),
        4 => (0..6u8, kind.clone(), class, unique, owners.clone(), born, age)
            .prop_map(|(slot, kind, class, unique, owner, born, age_minutes)| Act::Insert { slot, kind, class, unique, owner, born, age_minutes }),
        2 => any::<u8>().prop_map(|row| Act::Delete { row }),
        12 => (agents, prop_oneof![Just(1u8), 1..6u8], owners.clone(), prop::option::weighted(0.2, kind), any::<bool>())
            .prop_map(|(agent, limit, owner, kind, started)| Act::Claim { agent, limit, owner, kind, started }),
        2 => Just(Act::ClaimAgain),
        3 => (1..6u8, owners.clone(), prop_oneof![Just(3i8), Just(30i8), Just(-3i8)], any::<bool>())
            .prop_map(|(limit, owner, minutes, signed_in)| Act::ClaimEarly { limit, owner, minutes, signed_in }),
        2 => (owners, 1..6u8).prop_map(|(owner, limit)| Act::Drain { owner, limit }),
        3 => some().prop_map(|tickets| Act::Start { tickets }),
        2 => any::<u8>().prop_map(|ticket| Act::Progress { ticket }),
        4 => some().prop_map(|tickets| Act::Complete { tickets }),
        5 => (any::<u8>(), prop::bool::weighted(0.8), prop::option::weighted(0.3, 0..5u8))
            .prop_map(|(ticket, retryable, retry_minutes)| Act::Fail { ticket, retryable, retry_minutes }),
        3 => some().prop_map(|tickets| Act::Release { tickets }),
        2 => (any::<u8>(), 0..12u8).prop_map(|(ticket, minutes)| Act::Snooze { ticket, minutes }),
        2 => some().prop_map(|rows| Act::Cancel { rows }),
        3 => some().prop_map(|rows| Act::Requeue { rows }),
        1 => some().prop_map(|rows| Act::Bury { rows }),
        1 => Just(Act::Recover),
        6 => (any::<u8>(), word).prop_map(|(row, word)| Act::Plain { row, word }),
        1 => any::<u8>().prop_map(|row| Act::WriteBack { row }),
        8 => passing.prop_map(|minutes| Act::Age { minutes }),
    ]
    .boxed()
}

/// The common acts, and those that only one of the queues has.
pub(super) fn any_act(owned: bool) -> BoxedStrategy<Act> {
    let common = common_acts(owned);
    if !owned {
        let copy = (0..2u8, 0..4u8, 1..6u8).prop_map(|(kind, class, count)| Act::Copy { kind, class, count });
        return prop_oneof![75 => common, 6 => copy, 2 => Just(Act::Backup), 2 => Just(Act::Restore)].boxed();
    }
    let assign = (prop::collection::vec(any::<u8>(), 1..4), 0..4u8).prop_map(|(rows, owner)| Act::Assign { rows, owner });
    let policy = (1..4u8, prop_oneof![Just(1u8), Just(5u8), Just(15u8)], any::<bool>())
        .prop_map(|(owner, threshold_minutes, shared)| Act::Policy { owner, threshold_minutes, shared });
    prop_oneof![80 => common, 2 => assign, 1 => policy].boxed()
}
