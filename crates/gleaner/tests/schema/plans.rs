//! What a claim costs when the table is large: each probe reads one index, and a small multiple of what it returns.
//!
//! Plans come from `auto_explain`, including nested statements, so that the plans checked are those that the functions really run.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

use crate::world::{World, world};

/// Shared buffers that a call may touch: this many for each row it returns, and this many for the search itself.
const PER_ROW: i64 = 50;
const CONSTANT: i64 = 300;

/// A session in which every statement is explained, including those inside functions.
pub(crate) struct Watched {
    client: Client,
    plans: mpsc::UnboundedReceiver<Value>,
    table: &'static str,
    /// The most expensive call of each name, printed when the tests run with --nocapture.
    dearest: BTreeMap<String, (i64, i64)>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        for (what, (rows, buffers)) in &self.dearest {
            println!("{:<12} {what:<60} {rows:>3} rows {buffers:>5} buffers", self.table);
        }
    }
}

/// What one call returned: keys and leases, if it has them.
pub(crate) struct Returned {
    pub rows: i64,
    ids: Vec<String>,
    leases: Vec<String>,
}

impl Watched {
    pub(crate) async fn connect(world: &World, table: &'static str, settings: &str) -> Result<Self> {
        let (client, mut connection) = tokio_postgres::connect(world.url(), NoTls).await?;
        let (tell, plans) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message
                    && let Some((_, plan)) = notice.message().split_once("plan:\n")
                {
                    let _ = tell.send(serde_json::from_str(plan).unwrap_or(Value::Null));
                }
            }
        });
        client
            .batch_execute(&format!(
                "load 'auto_explain';
                 set auto_explain.log_nested_statements = on; set auto_explain.log_analyze = on; set auto_explain.log_buffers = on;
                 set auto_explain.log_timing = off; set auto_explain.log_format = json;
                 {settings};
                 set client_min_messages = log; set auto_explain.log_min_duration = 0"
            ))
            .await?;
        Ok(Self { client, plans, table, dearest: BTreeMap::new() })
    }

    /// Runs a query that returns rows, and checks every plan inside the function it calls against the limit.
    pub(crate) async fn run(&mut self, what: &str, sql: &str) -> Result<Returned> {
        while self.plans.try_recv().is_ok() {}
        // The simple protocol: parameters would add another plan cache on top of the function's own.
        let messages = self.client.simple_query(sql).await.with_context(|| sql.to_owned())?;
        let rows: Vec<_> = messages.iter().filter_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None }).collect();
        let column = |name: &str| rows.iter().filter_map(|r| r.try_get(name).ok().flatten().map(str::to_owned)).collect();
        let returned = Returned { rows: i64::try_from(rows.len())?, ids: column("id"), leases: column("lease") };
        let mut plans = Vec::new();
        while let Ok(plan) = self.plans.try_recv() {
            plans.push(plan);
        }
        // The outermost plan comes last. Its total includes the catalogue, which a session reads once; the inner statements do not.
        plans.pop().with_context(|| format!("{what}: no plan was seen"))?;
        let mut sum = 0;
        let mut dearest = (0, &Value::Null);
        for plan in &plans {
            // A call of another function: its statements have plans of their own, and the rest of it is the catalogue.
            let text = plan["Query Text"].as_str().unwrap_or_default();
            if text.starts_with("SELECT gleaner.") || plan["Plan"]["Node Type"] == "Function Scan" {
                continue;
            }
            self.refuse_sequential(what, &plan["Plan"], plan["Query Text"].as_str().unwrap_or_default())?;
            let blocks = |key: &str| plan["Plan"][key].as_i64().unwrap_or_default();
            let buffers = blocks("Shared Hit Blocks") + blocks("Shared Read Blocks");
            sum += buffers;
            if buffers > dearest.0 {
                dearest = (buffers, plan);
            }
        }
        let most = self.dearest.entry(what.to_owned()).or_default();
        *most = (returned.rows, sum.max(most.1));
        // Rows that a claim moved without returning them were read and written, too.
        let moved: i64 = plans
            .iter()
            .filter(|plan| plan["Plan"]["Node Type"] == "ModifyTable")
            .filter_map(|plan| plan["Plan"]["Plans"][0]["Actual Rows"].as_i64())
            .sum();
        ensure!(
            sum <= CONSTANT + PER_ROW * returned.rows.max(moved),
            "{what}: {sum} buffers for {} rows\n{sql}\nmost of them, {}, in\n{:#}",
            returned.rows,
            dearest.0,
            dearest.1
        );
        Ok(returned)
    }

    /// Completes what a claim returned.
    async fn complete(&mut self, what: &str, held: &Returned) -> Result<()> {
        let sql = format!(
            "select unnest(ids) as id from gleaner.complete_{}_many('{{{}}}'::{}[], '{{{}}}'::bigint[])",
            self.table,
            held.ids.join(","),
            if self.table == "jobs" { "bigint" } else { "uuid" },
            held.leases.join(",")
        );
        ensure!(self.run(what, &sql).await?.rows == held.rows);
        Ok(())
    }

    fn refuse_sequential(&self, what: &str, node: &Value, query: &str) -> Result<()> {
        let sequential = matches!(node["Node Type"].as_str(), Some("Seq Scan" | "Bitmap Heap Scan"));
        if sequential && node["Relation Name"] == self.table {
            bail!("{what}: {} of {} in\n{query}\n{node:#}", node["Node Type"], self.table);
        }
        for inner in node["Plans"].as_array().into_iter().flatten() {
            self.refuse_sequential(what, inner, query)?;
        }
        Ok(())
    }
}

/// Fills a table quickly: as the engine's role, for which no trigger acts, with its secondary indexes built afterwards, and with
/// statistics from when it was empty.
pub(crate) async fn load(world: &World, table: &str, inserts: &str) -> Result<()> {
    let indexes: Vec<(String, String)> = world
        .client
        .query(
            "select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) from pg_index i where i.indrelid = $1::text::regclass and not i.indisprimary",
            &[&table],
        )
        .await?
        .iter()
        .map(|r| (r.get(0), r.get(1)))
        .collect();
    let drops: String = indexes.iter().map(|(name, _)| format!("drop index {name};")).collect();
    let creates: String = indexes.iter().map(|(_, definition)| format!("{definition};")).collect();
    world
        .run(&format!(
            "set synchronous_commit = off; set maintenance_work_mem = '256MB'; alter table {table} set (autovacuum_enabled = off); analyze {table};
             begin; {drops} set local role gleaner_engine; {inserts}; set local role none; {creates} commit;
             update pg_class set relpages = 0, reltuples = 0, relallvisible = 0
             where oid = '{table}'::regclass or oid in (select indexrelid from pg_index where indrelid = '{table}'::regclass)"
        ))
        .await
}

/// The ways in which a plan is made: custom at first, generic from the sixth call on, generic from the start; with statistics
/// from when the table was empty, and with true ones.
pub(crate) const SESSIONS: &[(&str, &str)] = &[("six times", "select 1"), ("generic", "set plan_cache_mode = force_generic_plan")];

#[tokio::test]
async fn claims_of_jobs_read_a_small_multiple_of_what_they_return() -> Result<()> {
    let world = world().await?;
    load(
        &world,
        "gleaner.jobs",
        // One bulk insert each: a million rows share one due time, for two kinds, and the other kind comes first.
        "insert into gleaner.jobs (kind, due_at) select 'other', now() - interval '2 hours' from generate_series(1, 1000000);
         insert into gleaner.jobs (kind, status, due_at, finished_at) select 'mine', 'done', now() - interval '3 hours', now() from generate_series(1, 1000000);
         insert into gleaner.jobs (kind, due_at, priority) select 'mine', now() + interval '1 day', 2 from generate_series(1, 300000);
         insert into gleaner.jobs (kind, due_at) select 'mine', now() - interval '1 hour' from generate_series(1, 1000000)",
    )
    .await?;
    for statistics in ["empty", "true"] {
        if statistics == "true" {
            world.run("analyze gleaner.jobs").await?;
        }
        for (session, settings) in SESSIONS {
            let mut watched = Watched::connect(&world, "jobs", settings).await?;
            let named = |what: &str| format!("{what} ({session}, {statistics} statistics)");
            for _ in 1..=7 {
                let held = watched.run(&named("claim"), "select * from gleaner.claim_jobs('a', 10)").await?;
                assert_eq!(held.rows, 10);
                watched.complete(&named("complete"), &held).await?;
                let held = watched.run(&named("claim by kind"), "select * from gleaner.claim_jobs('a', 10, '{mine}')").await?;
                assert_eq!(held.rows, 10);
                let one = "select * from gleaner.claim_jobs('a', 1, '{mine,other,third}')";
                assert_eq!(watched.run(&named("claim one of three kinds"), one).await?.rows, 1);
                let none = "select * from gleaner.claim_jobs('a', 10, '{third}')";
                assert_eq!(watched.run(&named("claim, nothing of that kind"), none).await?.rows, 0);
                watched.run(&named("next due"), "select gleaner.next_due_jobs()").await?;
                let cancel = r#"select * from gleaner.cancel_jobs_matching('{"kind": "third"}')"#;
                assert_eq!(watched.run(&named("cancel by kind"), cancel).await?.rows, 0);
                watched.run(&named("next due by kind"), "select gleaner.next_due_jobs('{mine,third}')").await?;
            }
        }
    }
    Ok(())
}

/// A million rows in bulk ranges: half of another kind first, the rest after them.
#[tokio::test]
async fn claims_of_jobs_that_lie_read_a_small_multiple_of_what_they_return() -> Result<()> {
    let world = world().await?;
    load(
        &world,
        "gleaner.jobs",
        "insert into gleaner.jobs (kind, lease, due_at) select case when n <= 500000 then 'other' else 'mine' end, -1, now() - interval '1 hour' from generate_series(1, 1000000) n;
         insert into gleaner.bulk_range (queue, kind, class, due_at, first, last)
         select 'jobs', case when n < 500 then 'other' else 'mine' end, 2, now() - interval '1 hour', n * 1000 + 1, n * 1000 + 1000 from generate_series(0, 999) n",
    )
    .await?;
    for statistics in ["empty", "true"] {
        if statistics == "true" {
            world.run("analyze gleaner.jobs; analyze gleaner.bulk_range").await?;
        }
        for (session, settings) in SESSIONS {
            let mut watched = Watched::connect(&world, "jobs", settings).await?;
            let named = |what: &str| format!("{what} ({session}, {statistics} statistics)");
            for _ in 1..=7 {
                for kinds in ["null", "'{mine}'", "'{mine,other,third}'"] {
                    let held = watched.run(&named("claim 100"), &format!("select * from gleaner.claim_jobs('a', 100, {kinds})")).await?;
                    assert!(held.rows == 100 && held.leases.iter().any(|lease| lease.starts_with('-')), "{:?}", held.leases);
                    watched.complete(&named("complete"), &held).await?;
                }
                watched.run(&named("next due"), "select gleaner.next_due_jobs()").await?;
            }
            // A few at a time: the first claim unpacks 128 rows, and the next ones find those.
            let mut rows = 0;
            for _ in 1..=20 {
                let few = watched.client.simple_query("select * from gleaner.claim_jobs('a', 5, '{mine}')").await?;
                rows += few.iter().filter(|m| matches!(m, SimpleQueryMessage::Row(_))).count();
            }
            assert_eq!(rows, 100);
            assert_eq!(watched.run(&named("claim 5"), "select * from gleaner.claim_jobs('a', 5, '{mine}')").await?.rows, 5);
        }
    }
    Ok(())
}

#[tokio::test]
async fn claims_of_activities_read_a_small_multiple_of_what_they_return() -> Result<()> {
    let world = world().await?;
    let (me, private, sharing) =
        (world.person("me", 5, true).await?, world.person("private", 5, true).await?, world.person("sharing", 5, true).await?);
    load(
        &world,
        "public.activities",
        &format!(
            // Ascending ids: random ones make loading slow, and add nothing to the test.
            "insert into activities (id, type, processing_status, created_at)
             select lpad(to_hex(n), 32, '0')::uuid, 'call', 'completed', now() - interval '3 hours' from generate_series(1, 1000000) n;
             insert into activities (id, type, created_at, due_at, open_at)
             select lpad(to_hex(n + 1000000), 32, '0')::uuid, case n % 2 when 0 then 'call' else 'email' end, now() - interval '1 hour', now() - interval '1 hour', now() - interval '1 hour'
             from generate_series(1, 1000000) n;
             insert into activities (id, type, sales_id, created_at, due_at, open_at)
             select lpad(to_hex(n + 2000000), 32, '0')::uuid, 'call', case when n <= 100000 then {private} when n <= 110000 then {sharing} else {me} end,
                    now() - interval '2 hours', now() - interval '2 hours', now() - interval '115 minutes' - case when n <= 100000 then interval '1 minute' else '0' end
             from generate_series(1, 120000) n"
        ),
    )
    .await?;
    // A hundred thousand rows come first, stamped as open to all, and then their owner turned private.
    world.run(&format!("update sales set allow_remote_processing = false where id = {private}")).await?;
    for statistics in ["empty", "true"] {
        if statistics == "true" {
            world.run("analyze public.activities").await?;
        }
        for (session, settings) in SESSIONS {
            let mut watched = Watched::connect(&world, "activities", settings).await?;
            let named = |what: &str| format!("{what} ({session}, {statistics} statistics)");
            for _ in 1..=7 {
                for class in ["own", "global", "stale"] {
                    let claim = format!("select * from gleaner.claim_activities('a', 10, {me}, '{{{class}}}')");
                    let held = watched.run(&named(&format!("claim {class}")), &claim).await?;
                    assert_eq!(held.rows, 10);
                    watched.complete(&named("complete"), &held).await?;
                    let claim = format!("select * from gleaner.claim_activities('a', 10, {me}, '{{{class}}}', '{{call,note}}')");
                    assert_eq!(watched.run(&named(&format!("claim {class} by kind")), &claim).await?.rows, 10);
                }
                let none = format!("select * from gleaner.claim_activities('a', 10, {me}, p_kinds => '{{note}}')");
                assert_eq!(watched.run(&named("claim, nothing of that kind"), &none).await?.rows, 0);
                watched.run(&named("next due"), &format!("select gleaner.next_due_activities({me})")).await?;
            }
        }
    }
    assert_eq!(
        world.count(&format!("select count(*) from activities where sales_id = {private} and processing_status <> 'raw'")).await?,
        0
    );
    Ok(())
}
