//! The real queue next to the model: runs the same acts, and reads the whole table after each.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use gleaner::queue::{Acts, Answer, OnDuplicate};
use gleaner::{Claim, Failure, Held};
use serde_json::{Value, json};
use tokio_postgres::{Client, GenericClient};
use uuid::Uuid;

use super::act::{Born, Word};
use super::claiming::Asked;
use super::rules::{MINUTE, Row, Span};

/// The names that a queue uses for its table, columns and values.
#[derive(Debug)]
pub(super) struct Names {
    pub table: &'static str,
    /// Its rows as their holders see them, and whether a batch lease holds them: such a row is written only when its work ends.
    pub seen: &'static str,
    pub status: &'static str,
    pub owner: &'static str,
    pub kind: &'static str,
    pub class: &'static str,
    pub unique: &'static str,
    pub open: &'static str,
    pub letters: &'static str,
    pub tenant: Option<i32>,
    pub kinds: [&'static str; 2],
    pub words: [(Word, &'static str); 5],
}

pub(super) const JOBS: Names = Names {
    table: "gleaner.jobs",
    seen: "(select t.id, t.kind, t.priority, t.unique_key, t.created_at, t.attempts, t.lost,
                   case when s.id is null then t.status else 'running' end as status, coalesce(s.due_at, t.due_at) as due_at,
                   coalesce(-s.id, greatest(t.lease, case when t.lease = -1 then 0 end)) as lease, coalesce(s.deadline_at, t.deadline_at) as deadline_at,
                   case when s.id is null then t.started when s.begun @> t.id then 1::smallint else 0::smallint end as started,
                   coalesce(s.agent, t.agent) as agent, coalesce(s.session, t.session) as session
            from gleaner.jobs as t
            left join gleaner.batch_lease as s on s.queue = 'jobs' and t.lease in (0, -1) and t.status = 'ready' and s.keys @> t.id)",
    status: "status",
    owner: "null::bigint",
    kind: "kind",
    class: "2 - priority",
    unique: "unique_key",
    open: "null::timestamptz",
    letters: "0",
    tenant: None,
    kinds: ["thumbnail", "report"],
    words: [
        (Word::Ready, "ready"),
        (Word::Running, "running"),
        (Word::Done, "done"),
        (Word::Failed, "failed"),
        (Word::Cancelled, "cancelled"),
    ],
};

/// One tenant of a table that is otherwise like the built-in queue's.
pub(super) fn tasks(tenant: i32) -> Names {
    let seen = format!("(select t.* from public.tasks as t where t.shop = {tenant})");
    Names { table: "public.tasks", seen: seen.leak(), tenant: Some(tenant), ..JOBS }
}

/// The built-in queue without the rows that reject every change.
pub(super) const GOOD_JOBS: Names = Names { seen: "(select t.* from gleaner.jobs as t where not t.payload ? 'bad')", ..JOBS };

pub(super) const ACTIVITIES: Names = Names {
    table: "public.activities",
    seen: "(select t.* from public.activities as t)",
    status: "processing_status",
    owner: "sales_id",
    kind: "type",
    class: "0",
    unique: "null::text",
    open: "open_at",
    letters: "(select count(*) from activity_failures as f where f.original_activity_id = q.id)",
    tenant: None,
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
    pub(super) fn word(&self, word: Word) -> &'static str {
        self.words.iter().find(|(w, _)| *w == word).map_or("", |(_, name)| *name)
    }

    fn meaning(&self, name: &str) -> Result<Word> {
        self.words.iter().find(|(_, n)| *n == name).map(|(w, _)| *w).with_context(|| format!("a status {name:?}"))
    }

    /// In a queue with tenants: only rows of this tenant.
    pub(super) fn mine(&self) -> String {
        self.tenant.map_or_else(String::new, |tenant| format!(" and shop = {tenant}"))
    }

    pub(super) fn owned(&self) -> bool {
        self.open == "open_at"
    }
}

#[derive(Debug)]
pub(super) struct Table {
    pub names: &'static Names,
    pub acts: Acts,
    pub client: Client,
    /// For statements that need a transaction of their own.
    pub writer: tokio::sync::Mutex<Client>,
}

/// The values of a new row.
#[derive(Debug)]
pub(super) struct New<'a> {
    pub kind: &'a str,
    pub class: i64,
    pub unique: Option<&'a str>,
    pub owner: Option<i64>,
}

impl Table {
    /// Every row as it is now, and the database's clock.
    pub(super) async fn look(&self) -> Result<(BTreeMap<String, Row>, i64)> {
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

    /// Empties the table and sets the owners' policies.
    pub(super) async fn reset(&self, owners: &BTreeMap<i64, (i64, bool)>) -> Result<()> {
        let table = self.names.table;
        self.client
            .batch_execute(&format!(
                "truncate {table} cascade; truncate gleaner.request, gleaner.rejected_row, gleaner.late_result, gleaner.batch_lease"
            ))
            .await?;
        for (owner, (threshold, shared)) in owners {
            self.policy(*owner, *threshold, *shared).await?;
        }
        Ok(())
    }

    pub(super) async fn policy(&self, owner: i64, threshold: i64, shared: bool) -> Result<()> {
        let minutes = i32::try_from(threshold / MINUTE)?;
        let sql = "update sales set stale_threshold_minutes = $2, allow_remote_processing = $3 where id = $1";
        self.client.execute(sql, &[&owner, &minutes, &shared]).await?;
        Ok(())
    }

    /// A random key is passed in, so that a failing list of acts fails again.
    pub(super) async fn enqueue(&self, n: usize, new: &New<'_>, replace: bool, due: Option<i64>) -> Result<(String, String)> {
        let mut item = if self.names.owned() {
            json!({"id": format!("00000000-0000-4000-8000-0000000{:05}", 99_999 - n), "type": new.kind, "sales_id": new.owner})
        } else {
            json!({"kind": new.kind, "priority": 2 - new.class, "unique_key": new.unique})
        };
        if self.names.tenant.is_some() {
            item["id"] = json!(n);
        }
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

    /// Enqueues this many similar items by COPY.
    pub(super) async fn copy(&self, new: &New<'_>, count: usize) -> Result<()> {
        let items = vec![json!({"kind": new.kind, "priority": 2 - new.class}); count];
        let mut writer = self.writer.lock().await;
        let tx = writer.transaction().await?;
        ensure!(self.acts.enqueue_copy(&tx, &items).await? == u64::try_from(count)?, "not all were put in");
        Ok(tx.commit().await?)
    }

    /// A plain insert. Returns false when the unique index rejected it.
    pub(super) async fn insert(&self, key: &str, new: &New<'_>, born: Born, age_minutes: i64) -> Result<bool> {
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
            let (column, tenant) = self.names.tenant.map_or_else(Default::default, |t| ("shop, ", format!("{t}, ")));
            let sql = format!(
                "insert into {} ({column}id, kind, priority, unique_key, status, due_at)
                 values ({tenant}$1::text::bigint, $2, $3::bigint, $4, $5, clock_timestamp() - $6 * interval '1 minute')",
                self.names.table
            );
            self.client.execute(&sql, &[&key, &new.kind, &(2 - new.class), &new.unique, &word, &age]).await
        };
        match inserted {
            Ok(_) => Ok(true),
            Err(e) if e.code().is_some_and(|c| c.code() == "23505") => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    pub(super) async fn delete(&self, key: &str) -> Result<()> {
        self.client.execute(&format!("delete from {} where id::text = $1{}", self.names.table, self.names.mine()), &[&key]).await?;
        Ok(())
    }

    pub(super) async fn claim(&self, agent: &str, asked: Asked<'_>, started: bool, request: Option<Uuid>) -> Result<Vec<(String, i64)>> {
        self.forget_cursors(&self.client).await?;
        let mut claim = Claim::by(agent).limit(i32::try_from(asked.limit)?);
        claim.owner = asked.owner.map(|o| o.to_string());
        claim.kinds = asked.kind.map(|k| vec![k.to_owned()]);
        claim.started = started;
        claim.request = request;
        Ok(self.acts.claim(&self.client, &claim).await?.items.into_iter().map(|i| (i.key, i.lease)).collect())
    }

    /// Rows are moved back in time here, to before the position at which a slow claim of this session ended: reset that position.
    async fn forget_cursors(&self, client: &impl GenericClient) -> Result<()> {
        let sql = format!(
            "select set_config('gleaner.cursor_{}' || c, '', false) from unnest(array['', '_own', '_global', '_open', '_overdue', '_ranges']) as c",
            self.acts.name()
        );
        Ok(client.batch_execute(&sql).await?)
    }

    /// In SQL, the only interface in which a claim may be early. A signed-in caller is the owner itself.
    pub(super) async fn claim_early(&self, agent: &str, asked: Asked<'_>, signed_in: bool) -> Result<Vec<(String, i64)>> {
        let owner = asked.owner.map_or_else(String::new, |o| format!("p_owner => {o}, "));
        let sql = format!(
            "select id::text, lease from gleaner.claim_{}({}p_agent => $1, p_limit => $2, {owner}p_early => $3 * interval '1 microsecond')",
            self.acts.name(),
            self.names.tenant.map_or_else(String::new, |t| format!("p_tenant => {t}, ")),
        );
        let mut writer = self.writer.lock().await;
        let tx = writer.transaction().await?;
        self.forget_cursors(&tx).await?;
        if signed_in {
            let claims = "select set_config('request.jwt.claims', jsonb_build_object('role', 'authenticated', 'sub', user_id, 'session_id', 'here')::text, true) from sales where id = $1";
            tx.execute(claims, &[&asked.owner]).await?;
            tx.batch_execute("set local role authenticated").await?;
        }
        let rows = tx.query(&sql, &[&agent, &i32::try_from(asked.limit)?, &(asked.early as f64)]).await?;
        tx.commit().await?;
        Ok(rows.iter().map(|r| (r.get(0), r.get(1))).collect())
    }

    /// Simulates that time passes: all times move back. Triggers are off, because this is not an act.
    pub(super) async fn age(&self, minutes: i64) -> Result<()> {
        let own = if self.names.owned() { ", open_at = open_at - i, locked_at = locked_at - i" } else { "" };
        let sql = format!(
            "begin; set local session_replication_role = replica;
             update {} set created_at = created_at - i, due_at = due_at - i, deadline_at = deadline_at - i{own} from (select interval '{minutes} minutes' as i) as passed where true{};
             update gleaner.batch_lease set due_at = due_at - i, deadline_at = deadline_at - i from (select interval '{minutes} minutes' as i) as passed;
             update gleaner.bulk_range set due_at = due_at - i from (select interval '{minutes} minutes' as i) as passed;
             update gleaner.rejected_row set until = until - i from (select interval '{minutes} minutes' as i) as passed;
             commit",
            self.names.table,
            self.names.mine()
        );
        Ok(self.client.batch_execute(&sql).await?)
    }

    /// What a backup of the built-in queue contains: rows, records, and the values of the sequences.
    pub(super) async fn backup(&self) -> Result<()> {
        let sql = "drop table if exists kept_jobs, kept_batch_lease, kept_bulk_range, kept_sequence;
             create temp table kept_jobs as table gleaner.jobs;
             create temp table kept_batch_lease as table gleaner.batch_lease;
             create temp table kept_bulk_range as table gleaner.bulk_range;
             create temp table kept_sequence as
             select 'gleaner.batch_lease_seq' as name, last_value, is_called from gleaner.batch_lease_seq
             union all select pg_get_serial_sequence('gleaner.jobs', 'id'), last_value, is_called from gleaner.jobs_id_seq";
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Like a real restore: no trigger runs, and sessions start anew.
    pub(super) async fn restore(&self) -> Result<()> {
        let sql = "begin; set local session_replication_role = replica;
             delete from gleaner.jobs; delete from gleaner.batch_lease; delete from gleaner.bulk_range;
             insert into gleaner.jobs select * from kept_jobs;
             insert into gleaner.batch_lease select * from kept_batch_lease;
             insert into gleaner.bulk_range select * from kept_bulk_range;
             select setval(name, last_value, is_called) from kept_sequence;
             commit";
        self.client.batch_execute(sql).await?;
        let new_session = "select set_config('gleaner.batches_jobs', '', false)";
        self.client.batch_execute(new_session).await?;
        Ok(self.writer.lock().await.batch_execute(new_session).await?)
    }

    pub(super) async fn fail(&self, key: &str, lease: i64, retryable: bool, retry_minutes: Option<u8>) -> Result<Answer> {
        let mut failure = Failure::new("it broke");
        failure.retryable = retryable;
        failure.retry_in = retry_minutes.map(|m| std::time::Duration::from_secs(u64::from(m) * 60));
        Ok(self.acts.fail(&self.client, &Held::new(key, lease), &failure).await?)
    }

    pub(super) async fn plain(&self, key: &str, word: Word) -> Result<()> {
        let sql = format!("update {} set {} = $2 where id::text = $1{}", self.names.table, self.names.status, self.names.mine());
        self.client.execute(&sql, &[&key, &self.names.word(word)]).await?;
        Ok(())
    }

    pub(super) async fn write_back(&self, key: &str) -> Result<()> {
        let sql = format!(
            "update {} set lease = 3, due_at = '2020-01-01', deadline_at = null, attempts = 77, lost = 5, started = 2, agent = 'me', session = 'mine' where id::text = $1{}",
            self.names.table,
            self.names.mine()
        );
        self.client.execute(&sql, &[&key]).await?;
        Ok(())
    }

    /// The delay after each number of attempts, from the engine's own function. Also checks that it grows and stays within bounds.
    pub(super) async fn backoff(&self, key: &str) -> Result<Vec<i64>> {
        let sql = "select (extract(epoch from gleaner.backoff('30 seconds', '1 hour', n, $1)) * 1000000)::bigint from generate_series(1, 4) n order by n";
        let waits: Vec<i64> = self.client.query(sql, &[&key]).await?.iter().map(|r| r.get(0)).collect();
        for (n, wait) in waits.iter().enumerate() {
            let least = (MINUTE / 2) << n;
            ensure!(*wait >= least && *wait <= least + least / 5, "back-off {n} of {key} is {wait} µs");
        }
        Ok(waits)
    }

    /// Which owner's agents may claim which row, according to `explain`: (key, owner) of every claimable pair.
    pub(super) async fn explain(&self, owners: &[Option<i64>]) -> Result<Vec<(String, Option<i64>)>> {
        let name = self.acts.name();
        let arguments = match self.names.tenant {
            Some(tenant) => format!("{tenant}, q.id"),
            None if self.names.owned() => "q.id, o.owner".to_owned(),
            None => "q.id".to_owned(),
        };
        let sql = format!(
            "select q.id::text, o.owner from {} as q, unnest($1::bigint[]) as o (owner) where (gleaner.explain_{name}({arguments}) ->> 'claimable')::boolean",
            self.names.seen
        );
        Ok(self.client.query(&sql, &[&owners]).await?.iter().map(|r| (r.get(0), r.get(1))).collect())
    }

    pub(super) fn status(&self, told: &Answer) -> Result<Option<Word>> {
        told.status.as_deref().map(|s| self.names.meaning(s)).transpose()
    }
}

/// An error where the table differs from the model; otherwise the model takes over the exact times.
pub(super) fn agree(model: &mut BTreeMap<String, Row>, table: &BTreeMap<String, Row>) -> Result<()> {
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
