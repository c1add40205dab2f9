//! New rows in the real table and in the model.

use anyhow::{Result, ensure};

use super::act::{Born, Word};
use super::player::Player;
use super::rules::{MINUTE, Row, Span};
use super::table::New;

impl Player<'_> {
    pub(super) async fn enqueue(
        &mut self,
        kind: u8,
        class: u8,
        unique: Option<u8>,
        owner: u8,
        replace: bool,
        delay_minutes: u8,
    ) -> Result<()> {
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
    pub(super) async fn insert(
        &mut self,
        slot: u8,
        kind: u8,
        class: u8,
        unique: Option<u8>,
        owner: u8,
        born: Born,
        age_minutes: u8,
    ) -> Result<()> {
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
                // Inserted with the status running: the inserter holds it from now.
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
}

pub(super) fn row(key: &str, new: &New<'_>, created: Span, due: Span) -> Row {
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
