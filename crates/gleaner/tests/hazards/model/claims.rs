//! Claims on the real table and on the model.

use anyhow::{Result, ensure};
use uuid::Uuid;

use super::act::Word;
use super::claiming::Asked;
use super::player::Player;
use super::rules::Span;
use super::table::agree;

impl Player<'_> {
    /// The rows that the table returned must be those that the model finds.
    pub(super) async fn claim(
        &mut self,
        agent: &str,
        asked: Asked<'_>,
        started: bool,
        request: Option<Uuid>,
    ) -> Result<Vec<(String, i64)>> {
        let given = self.table.claim(agent, asked, started, request).await?;
        self.taken(agent, asked, started, &given).await?;
        Ok(given)
    }

    /// A claim before rows are due, or some time after. Arguments that a signed-in caller may not use are ignored.
    pub(super) async fn claim_early(&mut self, limit: u8, owner: Option<i64>, early: i64, signed_in: bool) -> Result<()> {
        let mut asked = Asked { owner, kind: None, limit: usize::from(limit), early };
        let signed_in = signed_in && owner.is_some();
        let given = self.table.claim_early("early", asked, signed_in).await?;
        if signed_in {
            asked.early = early.min(0);
        }
        self.taken("early", asked, false, &given).await
    }

    async fn taken(&mut self, agent: &str, asked: Asked<'_>, started: bool, given: &[(String, i64)]) -> Result<()> {
        let (rows, high) = self.table.look().await?;
        let now = Span { low: self.clock, high };
        for ticket in given {
            ensure!(!self.tickets.contains(ticket), "{ticket:?} was given out before: its former holder could end the work");
        }
        let keys: Vec<String> = given.iter().map(|(key, _)| key.clone()).collect();
        let buried: Vec<String> = self
            .model
            .rows
            .values()
            .filter(|r| r.unfinished() && rows.get(&r.key).is_some_and(|seen| seen.status == Word::Failed && seen.due.is_none()))
            .map(|r| r.key.clone())
            .collect();
        let (expected, mut expected_buried) = self.model.claim_finds(asked, now.high);
        expected_buried.sort();
        if keys != expected || buried != expected_buried {
            let loosely = self.model.unsettled && self.model.claim_may_find(asked, now.high, &keys, &buried)
                || (self.batches || self.looks_further) && self.model.claim_may_end(asked, now.high, &keys, &buried);
            // Rows that reject a claim use up its rounds, and rows that must be claimed alone are skipped for them: then the
            // answer is short, or begins with a later row. A row that is not claimable is never returned.
            let loosely = loosely || self.looks_further && self.model.claim_takes_claimable(asked, now.high, &keys);
            ensure!(loosely, "claimed {keys:?} and buried {buried:?}, the model {expected:?} and {expected_buried:?}");
        }
        self.model.buried(&buried, now);
        self.model.claimed(&keys, agent, started, asked.limit, now);
        for (key, lease) in given {
            if self.batches && *lease < 0 {
                self.model.row(key).lease = Span::exactly(*lease);
            }
            ensure!(rows[key].lease.low == *lease, "{key} was given with lease {lease}, the table has {}", rows[key].lease.low);
        }
        self.tickets.extend(given.iter().cloned());
        Ok(())
    }

    pub(super) async fn drain(&mut self, owner: Option<i64>, limit: u8) -> Result<()> {
        let (model, tickets, clock) = (self.model.clone(), self.tickets.clone(), self.clock);
        self.table.client.batch_execute("begin").await?;
        let drained = async {
            loop {
                let asked = Asked { owner, kind: None, limit: usize::from(limit), early: 0 };
                let given = self.claim("drain", asked, false, None).await?;
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

    pub(super) async fn explained(&mut self) -> Result<()> {
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
