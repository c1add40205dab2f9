//! A real queue beside the model: the same acts, and the whole table after each.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use gleaner::queue::{Acts, Answer, OnDuplicate};
use gleaner::{Claim, Failure};
use serde_json::{Value, json};
use tokio_postgres::Client;
use uuid::Uuid;

use super::act::{Born, Word};
use super::rules::{MINUTE, Row, Span};

/// The names a queue has for things.
#[derive(Debug)]
pub struct Names {
    pub table: &'static str,
    /// Its rows as their holders see them, and whether a sheaf holds them: such a row is written only when its work ends.
    pub seen: &'static str,
    pub status: &'static str,
    pub owner: &'static str,
    pub kind: &'static str,
    pub class: &'static str,
    pub unique: &'static str,
    pub open: &'static str,
    pub letters: &'static str,
    pub kinds: [&'static str; 2],
    pub words: [(Word, &'static str); 5],
}

pub const JOBS: Names = Names {
    table: "gleaner.jobs",
    seen: "(select t.id, t.kind, t.priority, t.unique_key, t.created_at, t.attempts, t.lost,
                   case when s.id is null then t.status else 'running' end as status, coalesce(s.due_at, t.due_at) as due_at,
                   coalesce(-s.id, greatest(t.lease, case when t.lease = -1 then 0 end)) as lease, coalesce(s.deadline_at, t.deadline_at) as deadline_at,
                   case when s.id is null then t.started when s.begun @> t.id then 1::smallint else 0::smallint end as started,
                   coalesce(s.agent, t.agent) as agent, coalesce(s.session, t.session) as session
            from gleaner.jobs as t
            left join gleaner.sheaf as s on s.queue = 'jobs' and t.lease in (0, -1) and t.status = 'ready' and s.keys @> t.id)",
    status: "status",
    owner: "null::bigint",
    kind: "kind",
    class: "2 - priority",
    unique: "unique_key",
    open: "null::timestamptz",
    letters: "0",
    kinds: ["thumbnail", "report"],
    words: [
        (Word::Ready, "ready"),
        (Word::Running, "running"),
        (Word::Done, "done"),
        (Word::Failed, "failed"),
        (Word::Cancelled, "cancelled"),
    ],
};

pub const ACTIVITIES: Names = Names {
    table: "public.activities",
    seen: "(select t.* from public.activities as t)",
    status: "processing_status",
    owner: "sales_id",
    kind: "type",
    class: "0",
    unique: "null::text",
    open: "open_at",
    letters: "(select count(*) from activity_failures as f where f.original_activity_id = q.id)",
    kinds: ["call", "email"],
    words: [
        (Word::Ready, "raw"),
        (Word::Running, "processing"),
        (Word::Done, "completed"),
        (Word::Failed, "failed"),
        (Word::Cancelled, "cancelled"),
    ],
};

impl Names {
    pub fn word(&self, word: Word) -> &'static str {
        self.words.iter().find(|(w, _)| *w == word).map_or("", |(_, name)| *name)
    }

    fn meaning(&self, name: &str) -> Result<Word> {
        self.words.iter().find(|(_, n)| *n == name).map(|(w, _)| *w).with_context(|| format!("a status {name:?}"))
    }

    pub fn owned(&self) -> bool {
        self.open == "open_at"
    }
}

#[derive(Debug)]
pub struct Table {
    pub names: &'static Names,
    pub acts: Acts,
    pub client: Client,
    /// For what needs a transaction of its own.
    pub writer: tokio::sync::Mutex<Client>,
}

/// What a new row is to have.
#[derive(Debug)]
pub struct New<'a> {
    pub kind: &'a str,
    pub class: i64,
    pub unique: Option<&'a str>,
    pub owner: Option<i64>,
}

impl Table {
    /// Every row as it stands, and the database's clock.
    pub async fn look(&self) -> Result<(BTreeMap<String, Row>, i64)> {
        let n = self.names;
        let micros = |column: &str| format!("(extract(epoch from {column}) * 1000000)::bigint");
        let sql = format!(
            "select {clock}, q.id::text, q.{kind}, ({class})::bigint, {unique}, {owner}, q.{status}, {due}, {open}, {created}, q.lease, {deadline},
                    q.attempts, q.lost, q.started, q.agent, q.session is not null and q.agent is null, ({letters})::bigint
             from (select clock_timestamp() as clock) as c left join {seen} as q on true",
            clock = micros("c.clock"),
            kind = n.kind,
            class = n.class,
            unique = n.unique,
            owner = n.owner,
            status = n.status,
            due = micros("q.due_at"),
            open = micros(n.open),
            created = micros("q.created_at"),
            deadline = micros("q.deadline_at"),
            letters = n.letters,
            seen = n.seen
        );
        let mut rows = BTreeMap::new();
        let mut clock = 0;
        for r in self.client.query_typed(&sql, &[]).await? {
            clock = r.get(0);
            let Some(key) = r.get::<_, Option<String>>(1) else { continue };
            let exactly = |i: usize| r.get::<_, Option<i64>>(i).map(Span::exactly);
            let row = Row {
                key: key.clone(),
                kind: r.get(2),
                class: r.get(3),
                unique: r.get(4),
                owner: r.get(5),
                status: n.meaning(r.get(6))?,
                due: exactly(7),
                open: r.get(8),
                created: Span::exactly(r.get(9)),
                lease: Span::exactly(r.get(10)),
                deadline: exactly(11),
                attempts: r.get(12),
                lost: r.get(13),
                started: r.get(14),
                agent: r.get(15),
                plain: r.get(16),
                letters: r.get(17),
            };
            rows.insert(key, row);
        }
        Ok((rows, clock))
    }

    /// Empty, and the owners' policies as given.
    pub async fn reset(&self, owners: &BTreeMap<i64, (i64, bool)>) -> Result<()> {
        let table = self.names.table;
        self.client
            .batch_execute(&format!(
                "truncate {table} cascade; truncate gleaner.request, gleaner.offender, gleaner.late_result, gleaner.sheaf"
            ))
            .await?;
        for (owner, (threshold, shared)) in owners {
            self.policy(*owner, *threshold, *shared).await?;
        }
        Ok(())
    }

    pub async fn policy(&self, owner: i64, threshold: i64, shared: bool) -> Result<()> {
        let minutes = i32::try_from(threshold / MINUTE)?;
        let sql = "update sales set stale_threshold_minutes = $2, allow_remote_processing = $3 where id = $1";
        self.client.execute(sql, &[&owner, &minutes, &shared]).await?;
        Ok(())
    }

    /// Where the key is a random one, it is given, so that a failing list of acts fails again.
    pub async fn enqueue(&self, n: usize, new: &New<'_>, replace: bool, due: Option<i64>) -> Result<(String, String)> {
        let mut item = if self.names.owned() {
            json!({"id": format!("00000000-0000-4000-8000-0000000{:05}", 99_999 - n), "type": new.kind, "sales_id": new.owner})
        } else {
            json!({"kind": new.kind, "priority": 2 - new.class, "unique_key": new.unique})
        };
        if let Some(due) = due {
            let row =
                self.client.query_one("select to_jsonb('epoch'::timestamptz + $1 * interval '1 microsecond')", &[&(due as f64)]).await?;
            item["due_at"] = row.get::<_, Value>(0);
        }
        let on_duplicate = if replace { OnDuplicate::Replace } else { OnDuplicate::Skip };
        let told = self.acts.enqueue(&self.client, &[item], on_duplicate).await?;
        ensure!(told.len() == 1, "enqueue answered {told:?}");
        Ok((told[0].key.clone(), told[0].outcome.clone()))
    }

    /// So many alike, by COPY.
    pub async fn copy(&self, new: &New<'_>, count: usize) -> Result<()> {
        let items = vec![json!({"kind": new.kind, "priority": 2 - new.class}); count];
        let mut writer = self.writer.lock().await;
        let tx = writer.transaction().await?;
        ensure!(self.acts.enqueue_copy(&tx, &items).await? == u64::try_from(count)?, "not all were put in");
        Ok(tx.commit().await?)
    }

    /// A plain insert. False when the unique index refused it.
    pub async fn insert(&self, key: &str, new: &New<'_>, born: Born, age_minutes: i64) -> Result<bool> {
        let word = self.names.word(match born {
            Born::Ready => Word::Ready,
            Born::Running => Word::Running,
            Born::Done => Word::Done,
            Born::Failed => Word::Failed,
        });
        let age = f64::from(i32::try_from(age_minutes)?);
        let inserted = if self.names.owned() {
            let sql = "insert into activities (id, type, sales_id, processing_status, created_at)
                       values ($1::text::uuid, $2, $3, $4, clock_timestamp() - $5 * interval '1 minute')";
            self.client.execute(sql, &[&key, &new.kind, &new.owner, &word, &age]).await
        } else {
            let sql = "insert into gleaner.jobs (id, kind, priority, unique_key, status, due_at)
                       values ($1::text::bigint, $2, $3::bigint, $4, $5, clock_timestamp() - $6 * interval '1 minute')";
            self.client.execute(sql, &[&key, &new.kind, &(2 - new.class), &new.unique, &word, &age]).await
        };
        match inserted {
            Ok(_) => Ok(true),
            Err(e) if e.code().is_some_and(|c| c.code() == "23505") => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    pub async fn delete(&self, key: &str) -> Result<()> {
        self.client.execute(&format!("delete from {} where id::text = $1", self.names.table), &[&key]).await?;
        Ok(())
    }

    pub async fn claim(
        &self,
        agent: &str,
        owner: Option<i64>,
        kind: Option<&str>,
        limit: i32,
        started: bool,
        request: Option<Uuid>,
    ) -> Result<Vec<(String, i64)>> {
        // Rows are moved back in time here, behind the place where a slow claim of this session ended: forget that place.
        self.client.batch_execute(&format!("select set_config('gleaner.floor_{}', '', false)", self.acts.name())).await?;
        let mut claim = Claim::by(agent).limit(limit);
        claim.owner = owner.map(|o| o.to_string());
        claim.kinds = kind.map(|k| vec![k.to_owned()]);
        claim.started = started;
        claim.request = request;
        Ok(self.acts.claim(&self.client, &claim).await?.items.into_iter().map(|i| (i.key, i.lease)).collect())
    }

    pub async fn fail(&self, key: &str, lease: i64, retryable: bool, retry_minutes: Option<u8>) -> Result<Answer> {
        let mut failure = Failure::new("it broke");
        failure.retryable = retryable;
        failure.retry_in = retry_minutes.map(|m| std::time::Duration::from_secs(u64::from(m) * 60));
        Ok(self.acts.fail(&self.client, key, lease, &failure).await?)
    }

    pub async fn plain(&self, key: &str, word: Word) -> Result<()> {
        let sql = format!("update {} set {} = $2 where id::text = $1", self.names.table, self.names.status);
        self.client.execute(&sql, &[&key, &self.names.word(word)]).await?;
        Ok(())
    }

    pub async fn write_back(&self, key: &str) -> Result<()> {
        let sql = format!(
            "update {} set lease = 3, due_at = '2020-01-01', deadline_at = null, attempts = 77, lost = 5, started = 2, agent = 'me', session = 'mine' where id::text = $1",
            self.names.table
        );
        self.client.execute(&sql, &[&key]).await?;
        Ok(())
    }

    /// The wait after each number of attempts, as the engine's own function has it; that it grows and stays in bounds is checked here.
    pub async fn backoff(&self, key: &str) -> Result<Vec<i64>> {
        let sql = "select (extract(epoch from gleaner.backoff('30 seconds', '1 hour', n, $1)) * 1000000)::bigint from generate_series(1, 4) n order by n";
        let waits: Vec<i64> = self.client.query(sql, &[&key]).await?.iter().map(|r| r.get(0)).collect();
        for (n, wait) in waits.iter().enumerate() {
            let least = (MINUTE / 2) << n;
            ensure!(*wait >= least && *wait <= least + least / 5, "back-off {n} of {key} is {wait} µs");
        }
        Ok(waits)
    }

    /// Who may claim what, as `explain` has it: (key, owner) of every claimable pair.
    pub async fn explain(&self, owners: &[Option<i64>]) -> Result<Vec<(String, Option<i64>)>> {
        let sql = if self.names.owned() {
            "select q.id::text, o.owner from activities as q, unnest($1::bigint[]) as o (owner) where (gleaner.explain_activities(q.id, o.owner) ->> 'claimable')::boolean"
        } else {
            "select q.id::text, o.owner from gleaner.jobs as q, unnest($1::bigint[]) as o (owner) where (gleaner.explain_jobs(q.id) ->> 'claimable')::boolean"
        };
        Ok(self.client.query(sql, &[&owners]).await?.iter().map(|r| (r.get(0), r.get(1))).collect())
    }

    pub fn status(&self, told: &Answer) -> Result<Option<Word>> {
        told.status.as_deref().map(|s| self.names.meaning(s)).transpose()
    }
}

/// Where the table is not as the model has it; otherwise the model takes over the exact times.
pub fn agree(model: &mut BTreeMap<String, Row>, table: &BTreeMap<String, Row>) -> Result<()> {
    ensure!(model.keys().eq(table.keys()), "the model has rows {:?}, the table {:?}", model.keys(), table.keys());
    for (key, expected) in model {
        let seen = &table[key];
        let fits = |span: Option<Span>, at: Option<Span>| match (span, at) {
            (Some(span), Some(at)) => span.holds(at.low),
            (None, None) => true,
            _ => false,
        };
        let same = expected.kind == seen.kind
            && expected.class == seen.class
            && expected.unique == seen.unique
            && expected.owner == seen.owner
            && expected.status == seen.status
            && fits(expected.due, seen.due)
            && expected.created.holds(seen.created.low)
            && expected.lease.holds(seen.lease.low)
            && fits(expected.deadline, seen.deadline)
            && expected.attempts == seen.attempts
            && expected.lost == seen.lost
            && expected.started == seen.started
            && expected.agent == seen.agent
            && expected.plain == seen.plain
            && expected.letters == seen.letters;
        if !same {
            bail!("row {key} is not as the model has it\n  model {expected:?}\n  table {seen:?}");
        }
        *expected = seen.clone();
    }
    Ok(())
}
