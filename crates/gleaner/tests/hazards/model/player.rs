//! One run of random acts: each is applied to the real table and to the model, and then both are compared.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gleaner::queue::Answer;
use gleaner::{Completion, Held, Progress};
use uuid::Uuid;

use super::act::Act;
use super::claiming::Asked;
use super::inserts::row;
use super::rules::{self, MINUTE, Model, SECOND, Span, Told};
use super::table::{New, Table, agree};

const AGENTS: [&str; 3] = ["ann", "bob", "cleo"];

/// In a queue with batch leases, a plain update of a lease is refused for any row.
fn refused(answer: Result<()>) -> Result<()> {
    let error = answer.err().context("a plain update was let through")?;
    let told = format!("{error:#}");
    ensure!(told.contains("by acts alone"), "{told}");
    Ok(())
}

/// One run: the real table and the model, side by side.
pub(super) struct Player<'a> {
    pub table: &'a Table,
    pub model: Model,
    /// The database's clock when it was last read.
    pub clock: i64,
    pub steps: usize,
    /// Key and lease of every row ever claimed: most are stale.
    pub tickets: Vec<(String, i64)>,
    request: Option<(Uuid, Vec<(String, i64)>)>,
    /// The model as it was when the backup was made.
    backup: Option<Model>,
    pub owners: Vec<Option<i64>>,
    /// Whether claims may hold rows by batch leases, whose leases are below zero.
    pub batches: bool,
    /// Whether a claim reads more rows than it may take, and so needs fewer looks than the model.
    pub looks_further: bool,
}

impl<'a> Player<'a> {
    pub(super) fn new(table: &'a Table, model: Model, batches: bool) -> Self {
        let owners = std::iter::once(None).chain(model.owners.keys().copied().map(Some)).collect();
        Self { table, model, clock: 0, steps: 0, tickets: Vec::new(), request: None, backup: None, owners, batches, looks_further: false }
    }

    /// Empties the table.
    pub(super) async fn begin(&mut self) -> Result<()> {
        self.table.reset(&self.model.owners).await?;
        self.clock = self.table.look().await?.1;
        Ok(())
    }

    pub(super) async fn play(&mut self, acts: &[Act]) -> Result<()> {
        self.begin().await?;
        for (n, act) in acts.iter().enumerate() {
            self.step(act).await.with_context(|| format!("step {n}, {act:?}"))?;
        }
        // At the end every agent claims all that it may, in order.
        for owner in 0..self.owners.len() {
            let act = Act::Drain { owner: u8::try_from(owner)?, limit: 3 };
            self.step(&act).await.with_context(|| format!("at the end, {act:?}"))?;
        }
        Ok(())
    }

    pub(super) async fn step(&mut self, act: &Act) -> Result<()> {
        self.steps += 1;
        self.settle().await?;
        self.perform(act).await?;
        self.compare().await?;
        self.explained().await
    }

    /// The table must match the model.
    pub(super) async fn compare(&mut self) -> Result<()> {
        let (rows, clock) = self.table.look().await?;
        agree(&mut self.model.rows, &rows)?;
        self.clock = clock;
        Ok(())
    }

    /// Waits, so that no act runs too close to the moment at which its answer changes.
    pub(super) async fn settle(&mut self) -> Result<()> {
        while self.model.boundaries().iter().any(|at| *at > self.clock && *at <= self.clock + SECOND / 5) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.clock = self.table.look().await?.1;
        }
        Ok(())
    }

    pub(super) async fn now(&self) -> Result<Span> {
        Ok(Span { low: self.clock, high: self.table.look().await?.1 })
    }

    pub(super) fn owner(&self, n: u8) -> Option<i64> {
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
                let asked = Asked { owner: self.owner(*owner), kind, limit: usize::from(*limit), early: 0 };
                let given = self.claim(agent, asked, *started, Some(request)).await?;
                self.request = Some((request, given));
            }
            Act::ClaimAgain => {
                let asked = self.request.clone();
                // A request that got no rows is treated as new: a waiting claim repeats itself this way.
                let all = Asked { owner: None, kind: None, limit: 5, early: 0 };
                if let Some((request, _)) = asked.as_ref().filter(|(_, given)| given.is_empty()) {
                    let given = self.claim("ann", all, false, Some(*request)).await?;
                    self.request = Some((*request, given));
                } else if let Some((request, given)) = asked {
                    let again = table.claim("ann", all, false, Some(request)).await?;
                    let mut standing = given;
                    standing.retain(|(key, lease)| self.model.rows.get(key).is_some_and(|r| r.held() && r.lease.low == *lease));
                    ensure!(again == standing, "the repeated claim gave {again:?}, standing are {standing:?}");
                }
            }
            Act::ClaimEarly { limit, owner, minutes, signed_in } => {
                self.claim_early(*limit, self.owner(*owner), i64::from(*minutes) * MINUTE, *signed_in).await?;
            }
            Act::Backup => {
                table.backup().await?;
                self.backup = Some(self.model.clone());
            }
            Act::Restore => {
                if let Some(backup) = self.backup.clone() {
                    table.restore().await?;
                    self.model = backup;
                    self.request = None;
                }
            }
            Act::Drain { owner, limit } => self.drain(self.owner(*owner), *limit).await?,
            Act::Recover => {
                let recovered = acts.recover(client).await?;
                let now = self.now().await?;
                let expected = self.model.recover(now);
                ensure!(usize::try_from(recovered)? == expected, "recovered {recovered}, the model {expected}");
            }
            Act::Plain { row, word } => {
                if let Some(key) = self.row(*row) {
                    if self.batches {
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
                    if self.batches {
                        return refused(table.write_back(&key).await);
                    }
                    table.write_back(&key).await?;
                }
            }
            Act::Age { minutes } => {
                table.age(i64::from(*minutes)).await?;
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
            act => self.perform_on_rows(act).await?,
        }
        Ok(())
    }

    /// The acts of a holder or an operator on existing rows.
    async fn perform_on_rows(&mut self, act: &Act) -> Result<()> {
        let table = self.table;
        let (acts, client) = (&table.acts, &table.client);
        match act {
            Act::Start { tickets } => {
                let held = self.tickets(tickets);
                let told = acts.start(client, &refs(&held)).await?;
                let expected = held.iter().map(|(key, lease)| self.model.start(key, *lease)).collect();
                self.told(told, expected)?;
            }
            Act::Progress { ticket } => {
                for (key, lease) in self.tickets(&[*ticket]) {
                    let told = acts.progress(client, &Held::new(&key, lease), &Progress::stage("halfway").percent(50.0)).await?.0;
                    let now = self.now().await?;
                    let expected = self.model.progress(&key, lease, now);
                    self.told(vec![told], vec![expected])?;
                }
            }
            Act::Complete { tickets } => {
                let held = self.tickets(tickets);
                let done: Vec<Completion> = held.iter().map(|(key, lease)| Completion::new(Held::new(key, *lease), None)).collect();
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
                // If two rows with the same unique key are released together, the first waits and the second is superseded: rows
                // change in key order.
                held.sort_by_key(|(key, _)| rules::key_order(key));
                let expected = held.iter().map(|(key, lease)| self.model.release(key, *lease, now)).collect();
                self.told(told, expected)?;
            }
            Act::Snooze { ticket, minutes } => {
                for (key, lease) in self.tickets(&[*ticket]) {
                    let told = acts.snooze(client, &Held::new(&key, lease), Duration::from_secs(u64::from(*minutes) * 60)).await?;
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
            other => unreachable!("perform does {other:?} itself"),
        }
        Ok(())
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
}

fn refs(held: &[(String, i64)]) -> Vec<Held> {
    held.iter().map(|(key, lease)| Held::new(key, *lease)).collect()
}

fn strs(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}
