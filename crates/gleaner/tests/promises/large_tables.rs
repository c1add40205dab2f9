//! Every act in a table of finished rows, about 1, 100 and 10,000 rows: it reads no table from end to end, and its cost is linear.

use anyhow::{Result, ensure};
use tokio_postgres::Client;

use crate::orders::{buffers, orders};
use crate::world::{World, world};

/// Shared buffers that a call may touch: this many for each row it is about, and this many for the call itself. An update of an
/// activity writes eleven indexes.
const PER_ROW: i64 = 130;
const CONSTANT: i64 = 700;

const SIZES: [i64; 4] = [1, 1, 100, 10_000];

/// What the act is about: nothing, rows that wait, or rows that are held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Nothing,
    Waiting,
    Held,
    RanOut,
}

/// Every act: its call, what has to be there before, and whether it changes each of the rows itself. Q is the queue and N the number
/// of rows.
const ACTS: [(&str, About, bool); 17] = [
    ("select from gleaner.enqueue_Q((select jsonb_agg(ITEM) from generate_series(1, N)))", About::Nothing, true),
    ("select from gleaner.claim_Q('a', N)", About::Waiting, false),
    ("select gleaner.next_due_Q()", About::Waiting, false),
    ("select from ROWS, gleaner.start_Q(r.ids, r.leases)", About::Held, false),
    ("select from rows as r, gleaner.progress_Q(r.id, r.lease, 'half', p_hold => '50 minutes')", About::Held, true),
    ("select from ROWS, gleaner.complete_Q_many(r.ids, r.leases)", About::Held, true),
    ("select from rows as r, gleaner.complete_Q(r.id, r.lease)", About::Held, true),
    ("select from rows as r, gleaner.fail_Q(r.id, r.lease, 'no')", About::Held, true),
    ("select from rows as r, gleaner.snooze_Q(r.id, r.lease, now() + interval '1 day')", About::Held, true),
    ("select from ROWS, gleaner.release_Q(r.ids, r.leases)", About::Held, true),
    ("select from ROWS, gleaner.cancel_Q(r.ids)", About::Held, true),
    ("select from ROWS, gleaner.cancel_Q(r.ids)", About::Waiting, true),
    ("select from gleaner.cancel_Q_matching(MATCH)", About::Waiting, true),
    ("select from ROWS, gleaner.requeue_Q(r.ids)", About::Held, true),
    ("select from ROWS, gleaner.bury_Q(r.ids, 'why')", About::Waiting, true),
    ("select from ROWS, gleaner.reschedule_Q(r.ids, now() + interval '1 day')", About::Waiting, true),
    ("select from rows as r, gleaner.explain_Q(r.id)", About::Held, false),
];

struct Queue {
    name: &'static str,
    table: &'static str,
    status: &'static str,
    item: &'static str,
    matching: &'static str,
}

impl Queue {
    /// The rows that the call is about, as the table `rows`.
    async fn prepare(&self, client: &Client, about: About, rows: i64) -> Result<()> {
        let Self { name, table, item, status, .. } = self;
        if about == About::Nothing {
            return Ok(());
        }
        let insert = format!("select from gleaner.enqueue_{name}((select jsonb_agg({item}) from generate_series(1, {rows})))");
        let taken = if about == About::Waiting {
            format!("select id, lease from {table} where due_at is not null")
        } else {
            format!("select id, lease from gleaner.claim_{name}('a', {rows})")
        };
        client.batch_execute(&format!("{insert}; create temp table rows on commit drop as {taken}; analyze rows")).await?;
        if about == About::RanOut {
            let past = "due_at = due_at - interval '1 day'";
            client
                .batch_execute(&format!(
                    "set local role gleaner_engine; update gleaner.batch_lease set {past}; update {table} set {past} where {status} <> 'done'; reset role"
                ))
                .await?;
        }
        Ok(())
    }

    /// Calls an act about so many rows, in a transaction that is rolled back.
    async fn call(&self, client: &Client, call: &str, about: About, rows: i64, writes: bool) -> Result<()> {
        let sql = call
            .replace("ROWS", "(select array_agg(id order by id) as ids, array_agg(lease order by id) as leases from rows) as r")
            .replace("_Q", &format!("_{}", self.name))
            .replace("ITEM", self.item)
            .replace("MATCH", self.matching)
            .replace('N', &rows.to_string());
        // Rows that were rolled back are dead entries at the head of the line.
        client.batch_execute(&format!("vacuum {}", self.table)).await?;
        client.batch_execute("begin").await?;
        self.prepare(client, about, rows).await?;
        let before = self.counted(client).await?;
        let cost = buffers(client, &sql).await?;
        let after = self.counted(client).await?;
        client.batch_execute("rollback").await?;
        ensure!(after.0 == before.0, "{sql}\nreads {} from end to end", self.table);
        ensure!(!writes || after.1 - before.1 >= rows, "{sql}\nwrites {} of {rows} rows", after.1 - before.1);
        ensure!(cost <= CONSTANT + PER_ROW * rows, "{sql}\n{cost} buffers for {rows} rows");
        println!("{:<10} {rows:>6} rows {cost:>7} buffers  {call}", self.name);
        Ok(())
    }

    /// How often this transaction read the table from end to end, and how many rows it wrote.
    async fn counted(&self, client: &Client) -> Result<(i64, i64)> {
        let sql = "select seq_scan, n_tup_ins + n_tup_upd from pg_stat_xact_all_tables where relid = $1::text::regclass";
        let row = client.query_one(sql, &[&self.table]).await?;
        Ok((row.get(0), row.get(1)))
    }

    async fn every_act(&self, world: &World, more: &[(&str, About, bool)]) -> Result<()> {
        let recover = [("select gleaner.recover_Q()", About::RanOut, false)];
        for (call, about, writes) in ACTS.iter().chain(&recover).chain(more) {
            let client = world.connect().await?;
            for (warm, mut rows) in SIZES.into_iter().enumerate() {
                if self.name == "jobs" && call.contains("from rows") {
                    // Each call writes the record of the batch lease; ten thousand versions of it are not pruned within one transaction.
                    rows = rows.min(1_000);
                }
                if warm == 0 {
                    // The first call of a session reads the catalogue as well.
                    let _ = self.call(&client, call, *about, rows, false).await;
                    client.batch_execute("rollback").await?;
                } else {
                    self.call(&client, call, *about, rows, *writes).await?;
                }
            }
        }
        Ok(())
    }
}

#[tokio::test]
async fn every_act_on_a_table_of_ones_own_is_linear_and_reads_no_table_from_end_to_end() -> Result<()> {
    let world = orders("id bigint generated by default as identity primary key, note text, receipt jsonb", "result = 'receipt'").await?;
    world
        .run(
            "begin; set local synchronous_commit = off; set local role gleaner_engine;
             insert into orders (status, lease, due_at) select 'done', 5, null from generate_series(1, 100000); commit; analyze orders",
        )
        .await?;
    let queue = Queue {
        name: "orders",
        table: "public.orders",
        status: "status",
        item: "jsonb_build_object('note', 'x')",
        matching: "'{\"note\": \"x\"}'",
    };
    queue.every_act(&world, &[]).await
}

#[tokio::test]
async fn every_act_on_jobs_is_linear_and_reads_no_table_from_end_to_end() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "begin; set local synchronous_commit = off; set local role gleaner_engine;
             insert into gleaner.jobs (status, lease, due_at, finished_at) select 'done', 5, null, now() from generate_series(1, 100000);
             commit; analyze gleaner.jobs",
        )
        .await?;
    let queue = Queue {
        name: "jobs",
        table: "gleaner.jobs",
        status: "status",
        item: "jsonb_build_object('kind', 'x')",
        matching: "'{\"kind\": \"x\"}'",
    };
    queue.every_act(&world, &[]).await
}

#[tokio::test]
async fn every_act_on_activities_is_linear_and_reads_no_table_from_end_to_end() -> Result<()> {
    let world = world().await?;
    let me = world.person("me", 5, true).await?;
    world
        .run(
            "begin; set local synchronous_commit = off; set local role gleaner_engine;
             insert into activities (type, processing_status, lease, due_at) select 'call', 'completed', 5, null from generate_series(1, 50000);
             commit; analyze activities",
        )
        .await?;
    let queue = Queue {
        name: "activities",
        table: "public.activities",
        status: "processing_status",
        item: "jsonb_build_object('type', 'call', 'raw_data', '{}'::jsonb)",
        matching: "'{\"type\": \"call\"}'",
    };
    let assign = format!("select from ROWS, gleaner.assign_Q(r.ids, {me})");
    queue.every_act(&world, &[(&assign, About::Waiting, true)]).await
}
