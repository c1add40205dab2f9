//! A state machine against a model: random acts by several agents, people and plain programs on two real queues. After each act
//! its answer, the whole table and which agent may claim what must match the model. A failure prints the shortest list of acts
//! that still fails.

mod act;
mod claiming;
mod claims;
mod inserts;
mod partitions;
mod player;
mod rejections;
mod rules;
mod table;
mod tenants;
mod triggers;

use std::collections::BTreeMap;

use anyhow::Result;
use gleaner::queue::Acts;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::scale;
use crate::world::world;
use act::any_act;
use player::Player;
use rules::{MINUTE, Model, Rules};
use table::{ACTIVITIES, JOBS, Names, Table};

const CASES: u32 = 120;
const STEPS: usize = 70;

const JOB_RULES: Rules = Rules { owned: false, hold: 5 * MINUTE, head_start: 10 * MINUTE, retry_within: None, dead_letters: false };

#[test]
fn jobs_do_what_the_model_does() {
    check(&JOBS, JOB_RULES, None);
}

/// The same queue and the same model: for callers it makes no difference whether a claim writes its lease on the rows or holds
/// them by one record.
#[test]
fn jobs_held_by_batch_leases_do_what_the_model_does() {
    check(&JOBS, JOB_RULES, Some(2));
}

#[test]
fn activities_do_what_the_model_does() {
    check(
        &ACTIVITIES,
        Rules { owned: true, hold: 5 * MINUTE, head_start: 0, retry_within: Some(24 * 60 * MINUTE), dead_letters: true },
        None,
    );
}

/// Tries random lists of acts, and shortens one that fails.
fn try_lists<S: Strategy>(usual: u32, lists: S, play: impl Fn(&S::Value) -> Result<()>) {
    // `PROPTEST_CASES` overrides how many lists are tried.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    let cases = cases.unwrap_or(usual * u32::try_from(scale(20)).unwrap_or(1));
    let config = Config { cases, failure_persistence: None, max_shrink_time: 90_000, max_shrink_iters: 4000, ..Config::default() };
    let outcome = TestRunner::new(config).run(&lists, |list| play(&list).map_err(|e| TestCaseError::fail(format!("{e:#}"))));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts")
}

fn check(names: &'static Names, rules: Rules, bulk: Option<u32>) {
    let runtime = runtime();
    let (table, owners) = runtime.block_on(async {
        let w = world().await.expect("a database");
        if let Some(from) = bulk {
            w.bind_jobs_from(from).await.expect("jobs are attached with smaller batch leases");
        } else {
            w.never_bind_jobs().await.expect("jobs are attached without batch leases");
        }
        let acts = Acts::of(&w.client, if names.owned() { "activities" } else { "jobs" }).await.expect("the queue is attached");
        let mut owners = BTreeMap::new();
        if names.owned() {
            for (name, threshold, shared) in [("five", 5, true), ("fifteen", 15, true), ("private", 5, false)] {
                let id = w.person(name, threshold, shared).await.expect("a person");
                owners.insert(id, (i64::from(threshold) * MINUTE, shared));
            }
        }
        let writer = tokio::sync::Mutex::new(w.connect().await.expect("a connection"));
        (Table { names, acts, client: w.client, writer }, owners)
    });
    try_lists(CASES, prop::collection::vec(any_act(names.owned()), 1..=STEPS), |acts| {
        let mut player = Player::new(&table, Model::new(rules.clone(), owners.clone()), bulk.is_some());
        runtime.block_on(player.play(acts))
    });
}
