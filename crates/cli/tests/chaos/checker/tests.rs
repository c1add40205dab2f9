//! Broken histories, each a good one with one thing changed: the checker must say which.

use super::{Class, Verdict, Violation, check};
use crate::history::{Before, Event, History, Micros, Policy, What};

const SECOND: Micros = 1_000_000;

/// Ada (1) shares after ten seconds, Ben (2) shares nothing; Eve works for nobody in particular.
fn world(items: i64) -> History {
    History {
        items,
        owners: [(1, Policy { shared: true, open_after: 10 * SECOND }), (2, Policy { shared: false, open_after: 10 * SECOND })].into(),
        agents: [("ada".to_owned(), Some(1)), ("ben".to_owned(), Some(2)), ("eve".to_owned(), None)].into(),
        ..History::default()
    }
}

impl History {
    fn at(mut self, second: f64, item: i64, what: What) -> Self {
        self.events.push(Event { at: micros(second), item, what });
        self
    }

    fn arrives(self, second: f64, item: i64, owner: Option<i64>) -> Self {
        self.at(second, item, What::Arrived { owner, created: micros(second), due: micros(second) })
    }

    /// From the line.
    fn claims(self, second: f64, item: i64, agent: &str) -> Self {
        let before = Before { running: false, lease: 0, due: 0 };
        self.at(second, item, What::Claimed { agent: agent.into(), lease: micros(second), before })
    }

    /// From a holder whose hold ended at `due`.
    fn takes_over(self, second: f64, item: i64, agent: &str, from: f64, due: f64) -> Self {
        let before = Before { running: true, lease: micros(from), due: micros(due) };
        self.at(second, item, What::Claimed { agent: agent.into(), lease: micros(second), before })
    }

    /// The row becomes done, and whoever came with the lease of `from` hears that it was accepted.
    fn completes(self, second: f64, item: i64, from: f64) -> Self {
        let before = Before { running: true, lease: micros(from), due: 0 };
        self.at(second, item, What::Completed { before }).answers(second, item, from, "done")
    }

    fn answers(self, second: f64, item: i64, from: f64, outcome: &str) -> Self {
        self.at(second, item, What::Answered { lease: micros(from), outcome: outcome.into() })
    }

    fn keeps(mut self, item: i64, from: f64) -> Self {
        self.late.push((item, micros(from)));
        self
    }

    #[track_caller]
    fn must_show(self, violation: &Violation) {
        let found = check(&self).violations;
        assert!(found.contains(violation), "{found:?}");
    }
}

fn micros(second: f64) -> Micros {
    (second * 1e6) as Micros
}

/// Crash, takeover, late result refused and kept, and a lost answer asked for again.
fn good() -> History {
    world(2)
        .arrives(1.0, 1, Some(1))
        .arrives(1.0, 2, None)
        .claims(2.0, 1, "ada")
        .claims(2.5, 2, "eve")
        .completes(3.0, 2, 2.5)
        .answers(3.1, 2, 2.5, "already")
        .takes_over(12.0, 1, "eve", 2.0, 7.0)
        .answers(12.5, 1, 2.0, "lost")
        .keeps(1, 2.0)
        .completes(13.0, 1, 12.0)
}

#[test]
fn a_history_in_which_every_promise_was_kept_has_no_fault() {
    let verdict = check(&good());
    assert_eq!(verdict.violations, []);
    let Verdict { takeovers, accepted, refused, repeated, .. } = verdict;
    assert_eq!((takeovers, accepted, refused, repeated), (1, 2, 1, 1));
    assert_eq!(verdict.claims, [(Class::Own, 1), (Class::Global, 1), (Class::Stale, 1)].into());
}

#[test]
fn an_item_that_was_completed_twice_is_found() {
    good().completes(14.0, 1, 12.0).must_show(&Violation::Doubled { item: 1 });
    // By its answers alone, and by its row alone.
    good().answers(14.0, 1, 12.0, "done").must_show(&Violation::Doubled { item: 1 });
    let before = Before { running: true, lease: micros(12.0), due: 0 };
    good().at(14.0, 1, What::Completed { before }).must_show(&Violation::Doubled { item: 1 });
}

#[test]
fn an_item_that_was_lost_is_found() {
    let mut never = good();
    never.items = 3;
    never.must_show(&Violation::Lost { item: 3, why: "it never arrived" });
    let mut waiting = good().arrives(1.0, 3, None);
    waiting.items = 3;
    waiting.must_show(&Violation::Lost { item: 3, why: "it is not done" });
    let mut unheard = good();
    unheard.events.retain(|event| !matches!((&event.what, event.item), (What::Answered { .. }, 2)));
    unheard.must_show(&Violation::Lost { item: 2, why: "it is done, and nobody's result was accepted" });
    good().at(14.0, 1, What::Ended).must_show(&Violation::Lost { item: 1, why: "it was given up" });
}

#[test]
fn a_completion_under_a_stale_lease_is_found() {
    let stale = Violation::StaleAccepted { item: 1, lease: micros(2.0) };
    let taken_over = || world(1).arrives(1.0, 1, None).claims(2.0, 1, "ada").takes_over(12.0, 1, "eve", 2.0, 7.0);
    taken_over().completes(13.0, 1, 2.0).must_show(&stale);
    // What an engine without a fence does: the row is completed under the new holder's lease, by the old one.
    let before = Before { running: true, lease: micros(12.0), due: 0 };
    taken_over().at(13.0, 1, What::Completed { before }).answers(13.0, 1, 2.0, "done").must_show(&stale);
    // A row that nobody held, and a repetition of what was not accepted.
    let returned = world(1).arrives(1.0, 1, None).claims(2.0, 1, "ada").at(3.0, 1, What::Returned { due: 0, lost: 0 });
    returned.completes(13.0, 1, 2.0).must_show(&stale);
    good().answers(14.0, 1, 2.0, "already").must_show(&stale);
}

#[test]
fn a_holder_that_was_refused_is_found() {
    let refused = Violation::HolderRefused { item: 1, lease: micros(2.0) };
    world(1).arrives(1.0, 1, None).claims(2.0, 1, "ada").answers(3.0, 1, 2.0, "lost").must_show(&refused);
    good().answers(14.0, 2, 2.5, "lost").must_show(&Violation::HolderRefused { item: 2, lease: micros(2.5) });
    good().answers(14.0, 1, 5.0, "lost").must_show(&Violation::UnknownLease { item: 1, lease: micros(5.0) });
}

#[test]
fn an_item_that_was_taken_from_its_holder_is_found() {
    let early = world(1).arrives(1.0, 1, None).claims(2.0, 1, "ada").takes_over(6.0, 1, "eve", 2.0, 7.0).completes(8.0, 1, 6.0);
    early.must_show(&Violation::TakenFromHolder { item: 1, early_by: SECOND });
    good().claims(14.0, 1, "ada").must_show(&Violation::Reopened { item: 1 });
    good().claims(12.0, 1, "ada").must_show(&Violation::LeaseNotNew { item: 1, lease: micros(12.0) });
}

#[test]
fn a_stale_item_that_was_taken_before_its_threshold_is_found() {
    let early = world(1).arrives(1.0, 1, Some(1)).claims(10.5, 1, "eve").completes(11.0, 1, 10.5);
    early.must_show(&Violation::TakenEarly { item: 1, agent: "eve".into(), early_by: SECOND / 2 });
    let private = world(1).arrives(1.0, 1, Some(2)).claims(99.0, 1, "eve").completes(99.5, 1, 99.0);
    private.must_show(&Violation::TakenPrivate { item: 1, agent: "eve".into() });
}

#[test]
fn work_that_was_passed_over_for_less_urgent_work_is_found() {
    let passed = |own: Option<i64>, taken: Option<i64>, class| {
        let history = world(2).arrives(1.0, 1, own).arrives(1.0, 2, taken).claims(20.0, 2, "ben").completes(21.0, 2, 20.0);
        let history = history.claims(30.0, 1, "ben").completes(31.0, 1, 30.0);
        history.must_show(&Violation::PassedOver { item: 1, agent: "ben".into(), for_item: 2, class });
    };
    passed(Some(2), Some(1), Class::Stale);
    passed(Some(2), None, Class::Global);
    passed(None, Some(1), Class::Stale);
}

#[test]
fn who_takes_others_work_when_nothing_else_is_there_does_nothing_wrong() {
    // Its own arrived only then, was being claimed just then, or is of an owner it does not work for.
    let fine = |arrives: f64, claimed: f64, agent: &str| {
        let history = world(2).arrives(1.0, 2, Some(1)).arrives(arrives, 1, Some(2)).claims(20.0, 2, agent);
        let history = history.completes(21.0, 2, 20.0).claims(claimed, 1, "ben").completes(31.0, 1, claimed);
        assert_eq!(check(&history).violations, []);
    };
    fine(19.5, 30.0, "ben");
    fine(1.0, 20.5, "ben");
    fine(1.0, 30.0, "eve");
}

#[test]
fn evidence_that_is_missing_or_too_much_is_found() {
    let mut missing = good();
    missing.late.clear();
    missing.must_show(&Violation::Evidence { item: 1, lease: micros(2.0), refused: 1, kept: 0 });
    good().keeps(2, 2.5).must_show(&Violation::Evidence { item: 2, lease: micros(2.5), refused: 0, kept: 1 });
    good().keeps(1, 2.0).must_show(&Violation::Evidence { item: 1, lease: micros(2.0), refused: 1, kept: 2 });
}

#[test]
fn a_refused_result_that_is_brought_again_is_kept_once() {
    let again = good().answers(40.0, 1, 2.0, "lost");
    assert_eq!(check(&again).violations, []);
}
