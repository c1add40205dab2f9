//! A state machine against a model: random acts by several agents, people and plain programs on two real queues. After each
//! act its answer, the whole table and who may claim what must be as the model has it. A failure prints the shortest list of
//! acts that still fails.

mod act;
mod rules;
mod table;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gleaner::queue::{Acts, Answer};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use uuid::Uuid;

use crate::scale;
use crate::world::world;
use act::{Act, Born, Word, any_act};
use rules::{MINUTE, Model, Row, Rules, SECOND, Span, Told};
use table::{ACTIVITIES, JOBS, Names, New, Table, agree};

const CASES: u32 = 120;
const STEPS: usize = 70;
const AGENTS: [&str; 3] = ["ann", "bob", "cleo"];

#[test]
fn jobs_do_what_the_model_does() {
    check(&JOBS, Rules { owned: false, hold: 5 * MINUTE, head_start: 10 * MINUTE, retry_within: None, dead_letters: false }, None);
}

/// The same queue, the same model: whether a claim writes its lease on the rows or holds them by one record is nobody's business.
#[test]
fn jobs_held_by_sheaves_do_what_the_model_does() {
    let rules = Rules { owned: false, hold: 5 * MINUTE, head_start: 10 * MINUTE, retry_within: None, dead_letters: false };
    check(&JOBS, rules, Some(2));
}

#[test]
fn activities_do_what_the_model_does() {
    check(
        &ACTIVITIES,
        Rules { owned: true, hold: 5 * MINUTE, head_start: 0, retry_within: Some(24 * 60 * MINUTE), dead_letters: true },
        None,
    );
}

fn check(names: &'static Names, rules: Rules, sheaf: Option<u32>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts");
    let (table, owners) = runtime.block_on(async {
        let w = world().await.expect("a database");
        if let Some(from) = sheaf {
            w.bind_jobs_from(from).await.expect("jobs are attached with smaller sheaves");
        } else {
            w.never_bind_jobs().await.expect("jobs are attached without sheaves");
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
    let cases = CASES * u32::try_from(scale(20)).unwrap_or(1);
    let config = Config { cases, failure_persistence: None, max_shrink_time: 90_000, max_shrink_iters: 4000, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let lists = prop::collection::vec(any_act(names.owned()), 1..=STEPS);
    let outcome = runner.run(&lists, |acts| {
        let mut player = Player::new(&table, Model::new(rules.clone(), owners.clone()), sheaf.is_some());
        runtime.block_on(player.play(&acts)).map_err(|e| TestCaseError::fail(format!("{e:#}")))
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Where claims bind sheaves, a plain update of a lease is refused, whatever the row is.
fn refused(answer: Result<()>) -> Result<()> {
    let error = answer.err().context("a plain update was let through")?;
    let told = format!("{error:#}");
    ensure!(told.contains("by acts alone"), "{told}");
    Ok(())
}

/// One run: the real table and the model, side by side.
struct Player<'a> {
    table: &'a Table,
    model: Model,
    /// The database's clock when it was last read.
    clock: i64,
    steps: usize,
    /// Key and lease of everything ever handed out: most are stale.
    tickets: Vec<(String, i64)>,
    request: Option<(Uuid, Vec<(String, i64)>)>,
    owners: Vec<Option<i64>>,
    /// Whether claims may hold rows by sheaves, whose leases are below zero.
    sheaves: bool,
}

impl<'a> Player<'a> {
    fn new(table: &'a Table, model: Model, sheaves: bool) -> Self {
        let owners = std::iter::once(None).chain(model.owners.keys().copied().map(Some)).collect();
        Self { table, model, clock: 0, steps: 0, tickets: Vec::new(), request: None, owners, sheaves }
    }

    async fn play(&mut self, acts: &[Act]) -> Result<()> {
        self.table.reset(&self.model.owners).await?;
        self.clock = self.table.look().await?.1;
        for (n, act) in acts.iter().enumerate() {
            self.step(act).await.with_context(|| format!("step {n}, {act:?}"))?;
        }
        // To the end: whoever comes, everything that may be claimed is, in order.
        for owner in 0..self.owners.len() {
            let act = Act::Drain { owner: u8::try_from(owner)?, limit: 3 };
            self.step(&act).await.with_context(|| format!("at the end, {act:?}"))?;
        }
        Ok(())
    }

    async fn step(&mut self, act: &Act) -> Result<()> {
        self.steps += 1;
        self.settle().await?;
        self.perform(act).await?;
        let (rows, clock) = self.table.look().await?;
        agree(&mut self.model.rows, &rows)?;
        self.clock = clock;
        self.explained().await
    }

    /// No question is asked within a hair's breadth of the moment its answer changes.
    async fn settle(&mut self) -> Result<()> {
        while self.model.boundaries().iter().any(|at| *at > self.clock && *at <= self.clock + SECOND / 5) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.clock = self.table.look().await?.1;
        }
        Ok(())
    }

    async fn now(&self) -> Result<Span> {
        Ok(Span { low: self.clock, high: self.table.look().await?.1 })
    }

    fn owner(&self, n: u8) -> Option<i64> {
        self.owners[usize::from(n) % self.owners.len()]
    }

    fn row(&self, n: u8) -> Option<String> {
        let keys: Vec<&String> = self.model.rows.keys().collect();
        (!keys.is_empty()).then(|| keys[usize::from(n) % keys.len()].clone())
    }

    fn rows(&self, numbers: &[u8]) -> Vec<String> {
        let mut rows: Vec<String> = numbers.iter().filter_map(|n| self.row(*n)).collect();
        rows.dedup();
        let mut seen = std::collections::HashSet::new();
        rows.retain(|key| seen.insert(key.clone()));
        rows
    }

    /// Small numbers are the latest tickets.
    fn tickets(&self, numbers: &[u8]) -> Vec<(String, i64)> {
        let mut seen = std::collections::HashSet::new();
        let n = self.tickets.len();
        let recent = |i: &u8| if *i < 192 { usize::from(*i) % n.min(5) } else { usize::from(*i) % n };
        let all = numbers.iter().filter(|_| n > 0).map(|i| self.tickets[n - 1 - recent(i)].clone());
        all.filter(|(key, _)| seen.insert(key.clone())).collect()
    }

    async fn backoff(&self, key: &str) -> Result<impl Fn(&str, i32) -> i64 + use<>> {
        let waits = self.table.backoff(key).await?;
        Ok(move |_: &str, attempts: i32| waits[usize::try_from(attempts - 1).unwrap_or(0).min(waits.len() - 1)])
    }

    async fn perform(&mut self, act: &Act) -> Result<()> {
        let table = self.table;
        let (acts, client) = (&table.acts, &table.client);
        match act {
            Act::Enqueue { kind, class, unique, owner, replace, delay_minutes } => {
                self.enqueue(*kind, *class, *unique, *owner, *replace, *delay_minutes).await?;
            }
            Act::Insert { slot, kind, class, unique, owner, born, age_minutes } => {
                self.insert(*slot, *kind, *class, *unique, *owner, *born, *age_minutes).await?;
            }
            Act::Copy { kind, class, count } => {
                let new = New { kind: table.names.kinds[usize::from(*kind) % 2], class: i64::from(*class), unique: None, owner: None };
                table.copy(&new, usize::from(*count)).await?;
                let (rows, high) = table.look().await?;
                let now = Span { low: self.clock, high };
                for key in rows.into_keys().filter(|key| !self.model.rows.contains_key(key)).collect::<Vec<_>>() {
                    self.model.rows.insert(key.clone(), row(&key, &new, now, now));
                }
            }
            Act::Delete { row } => {
                if let Some(key) = self.row(*row) {
                    table.delete(&key).await?;
                    self.model.rows.remove(&key);
                }
            }
            Act::Claim { agent, limit, owner, kind, started } => {
                let agent = AGENTS[usize::from(*agent) % AGENTS.len()];
                let kind = kind.map(|k| table.names.kinds[usize::from(k) % 2]);
                let request = Uuid::new_v4();
                let given = self.claim(agent, self.owner(*owner), kind, *limit, *started, Some(request)).await?;
                self.request = Some((request, given));
            }
            Act::ClaimAgain => {
                let asked = self.request.clone();
                // What was given nothing is asked as if for the first time: a claim that waits repeats itself so.
                if let Some((request, _)) = asked.as_ref().filter(|(_, given)| given.is_empty()) {
                    let given = self.claim("ann", None, None, 5, false, Some(*request)).await?;
                    self.request = Some((*request, given));
                } else if let Some((request, given)) = asked {
                    let again = table.claim("ann", None, None, 5, false, Some(request)).await?;
                    let mut standing = given;
                    standing.retain(|(key, lease)| self.model.rows.get(key).is_some_and(|r| r.held() && r.lease.low == *lease));
                    ensure!(again == standing, "the repeated claim gave {again:?}, standing are {standing:?}");
                }
            }
            Act::Drain { owner, limit } => self.drain(self.owner(*owner), *limit).await?,
            Act::Start { tickets } => {
                let held = self.tickets(tickets);
                let told = acts.start(client, &refs(&held)).await?;
                let expected = held.iter().map(|(key, lease)| self.model.start(key, *lease)).collect();
                self.told(told, expected)?;
            }
            Act::Progress { ticket } => {
                for (key, lease) in self.tickets(&[*ticket]) {
                    let told = acts.progress(client, &key, lease, Some("halfway"), Some(50.0), None).await?.0;
                    let now = self.now().await?;
                    let expected = self.model.progress(&key, lease, now);
                    self.told(vec![told], vec![expected])?;
                }
            }
            Act::Complete { tickets } => {
                let held = self.tickets(tickets);
                let done: Vec<(&str, i64, Option<serde_json::Value>)> = held.iter().map(|(k, l)| (k.as_str(), *l, None)).collect();
                let told = acts.complete(client, &done).await?;
                let expected = held.iter().map(|(key, lease)| self.model.complete(key, *lease)).collect();
                self.told(told, expected)?;
            }
            Act::Fail { ticket, retryable, retry_minutes } => {
                for (key, lease) in self.tickets(&[*ticket]) {
                    let backoff = self.backoff(&key).await?;
                    let told = table.fail(&key, lease, *retryable, *retry_minutes).await?;
                    let now = self.now().await?;
                    let expected = self.model.fail(&key, lease, *retryable, retry_minutes.map(|m| i64::from(m) * MINUTE), now, &backoff);
                    self.told(vec![told], vec![expected])?;
                }
            }
            Act::Release { tickets } => {
                let mut held = self.tickets(tickets);
                let told = acts.release(client, &refs(&held)).await?;
                let now = self.now().await?;
                // Of twins given back together the first waits and the second is superseded: rows change in key order.
                held.sort_by_key(|(key, _)| rules::key_order(key));
                let expected = held.iter().map(|(key, lease)| self.model.release(key, *lease, now)).collect();
                self.told(told, expected)?;
            }
            Act::Snooze { ticket, minutes } => {
                for (key, lease) in self.tickets(&[*ticket]) {
                    let told = acts.snooze(client, &key, lease, Duration::from_secs(u64::from(*minutes) * 60)).await?;
                    let now = self.now().await?;
                    let expected = self.model.snooze(&key, lease, i64::from(*minutes) * MINUTE, now);
                    self.told(vec![told], vec![expected])?;
                }
            }
            Act::Cancel { rows } => {
                let keys = self.rows(rows);
                let told = acts.cancel(client, &strs(&keys), Some("changed our mind")).await?;
                let now = self.now().await?;
                let expected = keys.iter().map(|key| self.model.cancel(key, now)).collect();
                self.told(told, expected)?;
            }
            Act::Requeue { rows } => {
                let mut keys = self.rows(rows);
                let told = acts.requeue(client, &strs(&keys)).await?;
                let now = self.now().await?;
                keys.sort_by_key(|key| rules::key_order(key));
                let expected = keys.iter().map(|key| self.model.requeue(key, now)).collect();
                self.told(told, expected)?;
            }
            Act::Bury { rows } => {
                let keys = self.rows(rows);
                let told = acts.bury(client, &strs(&keys), None).await?;
                let now = self.now().await?;
                let expected = keys.iter().map(|key| self.model.bury(key, now)).collect();
                self.told(told, expected)?;
            }
            Act::Assign { rows, owner } => {
                let (keys, owner) = (self.rows(rows), self.owner(*owner));
                let told = acts.assign(client, &strs(&keys), owner.map(|o| o.to_string()).as_deref()).await?;
                let expected = keys.iter().map(|key| self.model.assign(key, owner)).collect();
                self.told(told, expected)?;
            }
            Act::Recover => {
                let recovered = acts.recover(client).await?;
                let now = self.now().await?;
                let expected = self.model.recover(now);
                ensure!(usize::try_from(recovered)? == expected, "recovered {recovered}, the model {expected}");
            }
            Act::Plain { row, word } => {
                if let Some(key) = self.row(*row) {
                    if self.sheaves {
                        return refused(table.plain(&key, *word).await);
                    }
                    let backoff = self.backoff(&key).await?;
                    table.plain(&key, *word).await?;
                    let now = self.now().await?;
                    self.model.plain(&key, *word, now, &backoff);
                }
            }
            Act::WriteBack { row } => {
                if let Some(key) = self.row(*row) {
                    if self.sheaves {
                        return refused(table.write_back(&key).await);
                    }
                    table.write_back(&key).await?;
                }
            }
            Act::Age { minutes } => {
                let names = table.names;
                let own = if names.owned() { ", open_at = open_at - i, locked_at = locked_at - i" } else { "" };
                let sql = format!(
                    "begin; set local role gleaner_engine;
                     update {} set created_at = created_at - i, due_at = due_at - i, deadline_at = deadline_at - i{own} from (select interval '{minutes} minutes' as i) as passed;
                     update gleaner.sheaf set due_at = due_at - i, deadline_at = deadline_at - i from (select interval '{minutes} minutes' as i) as passed;
                     update gleaner.swath set due_at = due_at - i from (select interval '{minutes} minutes' as i) as passed;
                     commit",
                    names.table
                );
                client.batch_execute(&sql).await?;
                self.model.age(i64::from(*minutes) * MINUTE);
            }
            Act::Policy { owner, threshold_minutes, shared } => {
                if let Some(owner) = self.owner(*owner) {
                    let threshold = i64::from(*threshold_minutes) * MINUTE;
                    table.policy(owner, threshold, *shared).await?;
                    self.model.owners.insert(owner, (threshold, *shared));
                    self.model.unsettled = true;
                }
            }
        }
        Ok(())
    }

    async fn enqueue(&mut self, kind: u8, class: u8, unique: Option<u8>, owner: u8, replace: bool, delay_minutes: u8) -> Result<()> {
        let unique = unique.map(|u| format!("u{u}"));
        let owned = self.table.names.owned();
        let new = New {
            kind: self.table.names.kinds[usize::from(kind) % 2],
            class: if owned { 0 } else { i64::from(class % 4) },
            unique: unique.as_deref(),
            owner: self.owner(owner),
        };
        let due = (delay_minutes > 0).then(|| self.clock + i64::from(delay_minutes) * MINUTE);
        let (key, outcome) = self.table.enqueue(self.steps, &new, replace, due).await?;
        let now = self.now().await?;
        let twin = unique.as_deref().and_then(|u| self.model.waiting_twin(u));
        match twin {
            None => {
                ensure!(outcome == "enqueued", "enqueue answered {outcome}, nothing waited");
                let row = row(&key, &new, now, due.map_or(now, Span::exactly));
                self.model.rows.insert(key, row);
            }
            Some(twin) => {
                ensure!(key == twin, "enqueue answered with row {key}, waiting is {twin}");
                ensure!(outcome == if replace { "replaced" } else { "standing" }, "enqueue answered {outcome}");
                if replace {
                    let row = self.model.row(&twin);
                    new.kind.clone_into(&mut row.kind);
                    row.class = new.class;
                    row.due = Some(due.map_or(now, Span::exactly));
                }
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    async fn insert(&mut self, slot: u8, kind: u8, class: u8, unique: Option<u8>, owner: u8, born: Born, age_minutes: u8) -> Result<()> {
        let owned = self.table.names.owned();
        let key = if owned { format!("00000000-0000-4000-8000-00000000000{}", slot % 10) } else { format!("-{}", slot + 1) };
        if self.model.rows.contains_key(&key) {
            return Ok(());
        }
        let unique = unique.map(|u| format!("u{u}"));
        let new = New {
            kind: self.table.names.kinds[usize::from(kind) % 2],
            class: if owned { 0 } else { i64::from(class % 4) },
            unique: unique.as_deref(),
            owner: self.owner(owner),
        };
        let inserted = self.table.insert(&key, &new, born, i64::from(age_minutes)).await?;
        let now = self.now().await?;
        let refused = born == Born::Ready && unique.as_deref().is_some_and(|u| self.model.waiting_twin(u).is_some());
        ensure!(inserted != refused, "inserted: {inserted}, a twin waits: {refused}");
        if refused {
            return Ok(());
        }
        let since = Span { low: now.low - i64::from(age_minutes) * MINUTE, high: now.high - i64::from(age_minutes) * MINUTE };
        let mut row = row(&key, &new, if owned { since } else { now }, since);
        match born {
            Born::Ready => {}
            Born::Running => {
                // Inserted as being worked on: the inserter holds it from now.
                self.model.born_running(&mut row, now);
            }
            Born::Done | Born::Failed => {
                row.status = if born == Born::Done { Word::Done } else { Word::Failed };
                row.due = None;
            }
        }
        self.model.rows.insert(key, row);
        Ok(())
    }

    /// A claim on both sides. What the table gave is what the model must have found.
    async fn claim(
        &mut self,
        agent: &str,
        owner: Option<i64>,
        kind: Option<&str>,
        limit: u8,
        started: bool,
        request: Option<Uuid>,
    ) -> Result<Vec<(String, i64)>> {
        let given = self.table.claim(agent, owner, kind, i32::from(limit), started, request).await?;
        let (rows, high) = self.table.look().await?;
        let now = Span { low: self.clock, high };
        let keys: Vec<String> = given.iter().map(|(key, _)| key.clone()).collect();
        let buried: Vec<String> = self
            .model
            .rows
            .values()
            .filter(|r| r.unfinished() && rows.get(&r.key).is_some_and(|seen| seen.status == Word::Failed && seen.due.is_none()))
            .map(|r| r.key.clone())
            .collect();
        let limit = usize::from(limit);
        let (expected, mut expected_buried) = self.model.claim_finds(owner, kind, limit, now.high);
        expected_buried.sort();
        if keys != expected || buried != expected_buried {
            let loosely = self.model.unsettled && self.model.claim_may_find(owner, kind, limit, now.high, &keys, &buried)
                || self.sheaves && self.model.claim_may_end(kind, limit, now.high, &keys, &buried);
            ensure!(loosely, "claimed {keys:?} and buried {buried:?}, the model {expected:?} and {expected_buried:?}");
        }
        self.model.buried(&buried, now);
        self.model.claimed(&keys, agent, started, now);
        for (key, lease) in &given {
            if self.sheaves && *lease < 0 {
                self.model.row(key).lease = Span::exactly(*lease);
            }
            ensure!(rows[key].lease.low == *lease, "{key} was given with lease {lease}, the table has {}", rows[key].lease.low);
        }
        self.tickets.extend(given.iter().cloned());
        Ok(given)
    }

    async fn drain(&mut self, owner: Option<i64>, limit: u8) -> Result<()> {
        let (model, tickets, clock) = (self.model.clone(), self.tickets.clone(), self.clock);
        self.table.client.batch_execute("begin").await?;
        let drained = async {
            loop {
                let given = self.claim("drain", owner, None, limit, false, None).await?;
                let (rows, clock) = self.table.look().await?;
                agree(&mut self.model.rows, &rows)?;
                self.clock = clock;
                if given.is_empty() {
                    return Ok(());
                }
            }
        };
        let drained: Result<()> = drained.await;
        self.table.client.batch_execute("rollback").await?;
        (self.model, self.tickets, self.clock) = (model, tickets, clock);
        drained
    }

    fn told(&self, told: Vec<Answer>, expected: Vec<Told>) -> Result<()> {
        ensure!(told.len() == expected.len(), "{} answers for {} rows: {told:?}", told.len(), expected.len());
        let told: HashMap<String, &Answer> = told.iter().map(|a| (a.key.clone(), a)).collect();
        for (key, outcome, status) in expected {
            let answer = told.get(&key).with_context(|| format!("no answer for {key}"))?;
            let answered = self.table.status(answer)?;
            ensure!(
                answer.outcome.as_str() == outcome && answered == status,
                "{key}: answered {} ({answered:?}), the model {outcome} ({status:?})",
                answer.outcome.as_str()
            );
        }
        Ok(())
    }

    async fn explained(&mut self) -> Result<()> {
        self.settle().await?;
        let mut claimable = self.table.explain(&self.owners).await?;
        claimable.sort();
        let mut expected: Vec<(String, Option<i64>)> = Vec::new();
        for row in self.model.rows.values() {
            for owner in &self.owners {
                if self.model.class(row, *owner, self.clock).is_some() {
                    expected.push((row.key.clone(), *owner));
                }
            }
        }
        expected.sort();
        ensure!(claimable == expected, "claimable by whom: explain says {claimable:?}, the model {expected:?}");
        Ok(())
    }
}

fn row(key: &str, new: &New<'_>, created: Span, due: Span) -> Row {
    Row {
        key: key.to_owned(),
        kind: new.kind.to_owned(),
        class: new.class,
        unique: new.unique.map(str::to_owned),
        owner: new.owner,
        status: Word::Ready,
        due: Some(due),
        open: None,
        created,
        lease: Span::exactly(0),
        deadline: None,
        attempts: 0,
        lost: 0,
        started: 0,
        agent: None,
        plain: false,
        letters: 0,
    }
}

fn refs(held: &[(String, i64)]) -> Vec<(&str, i64)> {
    held.iter().map(|(key, lease)| (key.as_str(), *lease)).collect()
}

fn strs(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}
