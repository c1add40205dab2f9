//! Claims that wait together: one query serves all of them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::StreamExt as _;
use futures_util::future::{join_all, try_join_all};
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::stage::{Stage, stage};

pub(super) fn patient(agent: impl std::fmt::Display) -> Value {
    json!({"agent": agent.to_string(), "wait_seconds": 40})
}

pub(super) async fn insert(stage: &Stage, many: i32) -> Result<()> {
    let sql = "insert into gleaner.jobs (payload) select to_jsonb(n) from generate_series(1, $1) as n";
    stage.client.execute(sql, &[&many]).await?;
    Ok(stage.client.batch_execute("notify gleaner, 'jobs'").await?)
}

/// Returns when that many claims wait.
pub(super) async fn come(stage: &Stage, claims: usize) {
    while stage.queues.waiting_claims() < claims {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Returns when that many claims are in a group, besides those in a running query.
async fn join(stage: &Stage, claims: usize) {
    while stage.queues.claim_groups().1 < claims {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Queries that find nothing finish only when this is dropped.
pub(super) struct HeldUp {
    pub keeper: Client,
}

impl HeldUp {
    pub(super) async fn new(stage: &Stage) -> Result<Self> {
        let sql = "create or replace function gleaner.next_due_jobs(p_kinds text[] default null) returns interval language plpgsql
                   as 'begin perform pg_advisory_xact_lock_shared(7); return null; end'";
        stage.client.batch_execute(sql).await?;
        let keeper = gleaner::connect(&stage.database.url).await?;
        keeper.batch_execute("select pg_advisory_lock(7)").await?;
        Ok(Self { keeper })
    }

    /// Returns when a query is about to finish, and is blocked.
    pub(super) async fn wait(&self) -> Result<()> {
        let sql = "select count(*) from pg_locks where locktype = 'advisory' and not granted
                   and database = (select oid from pg_database where datname = current_database())";
        while self.keeper.query_one(sql, &[]).await?.get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

/// How long the server takes for three queries on behalf of this many waiting claims. The database counts them itself.
async fn three_queries(agents: usize) -> Result<Duration> {
    let stage = stage().await?;
    let sql = "create sequence public.queries; grant usage on sequence public.queries to public;
               create or replace function gleaner.next_due_jobs(p_kinds text[] default null) returns interval language plpgsql
               as 'begin perform nextval(''public.queries''); return null; end'";
    stage.client.batch_execute(sql).await?;
    // As an agent would: it claims again when nothing came.
    let wait = async |agent: usize| -> Result<()> {
        loop {
            let (status, answer) = stage.call("jobs/claim", json!({"agent": agent.to_string(), "wait_seconds": 50})).await?;
            ensure!(status == 200 && answer["items"] == json!([]), "{answer}");
        }
    };
    let queries = async || anyhow::Ok(stage.client.query_one("select last_value from public.queries", &[]).await?.get::<_, i64>(0));
    let counted = async {
        come(&stage, agents).await;
        let (before, began) = (queries().await?, Instant::now());
        while queries().await? < before + 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(began.elapsed())
    };
    tokio::select! {
        counted = counted => counted,
        ended = try_join_all((0..agents).map(wait)) => Err(ended.err().context("the claims ended")?),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waiting_claims_cost_no_more_statements_than_ten() -> Result<()> {
    let (ten, thousand) = tokio::try_join!(three_queries(10), three_queries(1000))?;
    // One query every five seconds, the first of the three at any time within five. A query per claim would take no time at all.
    let least = Duration::from_secs(9);
    assert!(ten > least && thousand > least, "three queries within {ten:?} with ten, within {thousand:?} with a thousand");
    Ok(())
}

#[tokio::test]
async fn every_waiting_claim_gets_a_row_and_no_row_is_given_twice() -> Result<()> {
    let stage = stage().await?;
    stage.settle().await?;
    let queries = stage.queues.tally().1;
    let claims = join_all((0..300).map(|agent| stage.call("jobs/claim", patient(agent))));
    let arriving = async {
        come(&stage, 300).await;
        // Ten times, insert fewer rows than there are waiting claims, and then enough for all the others.
        for _ in 0..10 {
            insert(&stage, 5).await?;
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        insert(&stage, 250).await?;
        anyhow::Ok(Instant::now())
    };
    let (answers, arrived) = tokio::join!(claims, arriving);
    let arrived = arrived?;
    assert!(arrived.elapsed() < Duration::from_secs(4), "by the notification, not by the next query in five seconds");
    let keys: HashSet<String> =
        answers.into_iter().map(|answer| answer.map(|(_, answer)| answer["items"][0]["key"].to_string())).collect::<Result<_>>()?;
    assert_eq!(keys.len(), 300, "each has a row of its own");
    let queries = stage.queues.tally().1 - queries;
    assert!(queries < 150, "{queries} queries for 300 claims");
    Ok(())
}

#[tokio::test]
async fn rows_go_to_those_who_have_waited_longest() -> Result<()> {
    let stage = stage().await?;
    stage.settle().await?;
    let stage = &stage;
    let mut claims = FuturesUnordered::new();
    for agent in 0..6 {
        claims.push(async move { anyhow::Ok((agent, stage.call("jobs/claim", patient(agent)).await?.1["items"][0]["payload"].clone())) });
        tokio::select! {
            answer = claims.next() => anyhow::bail!("{answer:?} too early"),
            () = come(stage, agent + 1) => {}
        }
    }
    for expected in [0..3, 3..6] {
        let mut given = HashSet::new();
        let (inserted, ()) = tokio::join!(insert(stage, 3), async {
            while given.len() < 3 {
                given.extend(claims.next().await.and_then(Result::ok).map(|(agent, _)| agent));
            }
        });
        inserted?;
        assert_eq!(given, expected.collect(), "those who came first");
    }
    Ok(())
}

#[tokio::test]
async fn claims_that_arrive_during_an_empty_query_share_its_answer() -> Result<()> {
    let stage = stage().await?;
    stage.settle().await?;
    // A notification that another claim has seen, long enough ago for a query to prove something.
    stage.queues.record("jobs");
    stage.ask("jobs/claim", json!({"agent": "else", "kinds": ["else"]})).await?;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let held_up = HeldUp::new(&stage).await?;
    let queries = stage.queues.tally().1;
    let claims = async {
        let first = stage.call("jobs/claim", json!({"agent": "first"}));
        let others = async {
            held_up.wait().await?;
            let others = (0..50).map(|agent| stage.call("jobs/claim", json!({"agent": agent.to_string(), "wait_seconds": agent % 2})));
            let release = async {
                join(&stage, 50).await;
                held_up.keeper.batch_execute("select pg_advisory_unlock(7)").await.map_err(anyhow::Error::from)
            };
            tokio::try_join!(try_join_all(others), release)
        };
        tokio::try_join!(first, others)
    };
    let (first, (others, ())) = claims.await?;
    for (status, answer) in others.into_iter().chain([first]) {
        assert_eq!((status, &answer["items"]), (200, &json!([])));
    }
    assert_eq!(stage.queues.tally().1 - queries, 1, "one query for all");
    Ok(())
}

#[tokio::test]
async fn a_claim_that_arrives_after_a_later_notification_queries_again() -> Result<()> {
    let stage = stage().await?;
    stage.settle().await?;
    let held_up = HeldUp::new(&stage).await?;
    stage.queues.record("jobs");
    let first = stage.call("jobs/claim", json!({"agent": "first"}));
    let later = async {
        // The first claim's query has found nothing, but has not returned yet.
        held_up.wait().await?;
        let heard = stage.queues.follow("jobs").await?;
        insert(&stage, 1).await?;
        stage.queues.notified("jobs", heard).await;
        let claim = stage.call("jobs/claim", json!({"agent": "later"}));
        let release = async {
            join(&stage, 1).await;
            held_up.keeper.batch_execute("select pg_advisory_unlock(7)").await.map_err(anyhow::Error::from)
        };
        anyhow::Ok(tokio::try_join!(claim, release)?.0)
    };
    let ((_, first), (_, later)) = tokio::try_join!(first, later)?;
    assert_eq!(first["items"], json!([]), "it asked before there was work");
    assert_eq!(later["items"][0]["payload"], 1, "it asked after the notification");
    Ok(())
}

#[tokio::test]
async fn a_claim_that_keeps_waiting_gets_the_next_row_when_it_is_due() -> Result<()> {
    let stage = stage().await?;
    stage.settle().await?;
    let claims = try_join_all((0..2).map(|agent| stage.call("jobs/claim", patient(agent))));
    let arriving = async {
        come(&stage, 2).await;
        let sql = "insert into gleaner.jobs (payload, due_at) select to_jsonb(n), clock_timestamp() + (n - 0.5) * interval '1 second'
                   from generate_series(1, 2) as n; notify gleaner, 'jobs'";
        stage.client.batch_execute(sql).await?;
        anyhow::Ok(Instant::now())
    };
    let (answers, arrived) = tokio::try_join!(claims, arriving)?;
    assert!(arrived.elapsed() < Duration::from_secs(4), "what was found for one does not say that nothing is due for the other");
    let mut payloads: Vec<_> = answers.iter().map(|(_, answer)| answer["items"][0]["payload"].as_i64()).collect();
    payloads.sort_unstable();
    assert_eq!(payloads, [Some(1), Some(2)]);
    Ok(())
}

#[tokio::test]
async fn a_claim_that_is_refused_does_not_spoil_those_beside_it() -> Result<()> {
    let stage = stage().await?;
    stage.ask("jobs/enqueue", json!({"items": vec![json!({"payload": 1}); 20]})).await?;
    let agents = (0..20).map(|agent| if agent == 7 { "no text\0".to_owned() } else { agent.to_string() });
    let answers = try_join_all(agents.map(|agent| stage.call("jobs/claim", json!({"agent": agent})))).await?;
    for (agent, (status, answer)) in answers.iter().enumerate() {
        assert_eq!(*status, if agent == 7 { 400 } else { 200 }, "{agent}: {answer}");
        assert_eq!(answer["items"].as_array().map_or(0, Vec::len), usize::from(agent != 7), "{agent}: {answer}");
    }
    Ok(())
}

#[tokio::test]
async fn a_queue_that_was_attached_again_is_soon_served_as_declared_now() -> Result<()> {
    let stage = stage().await?;
    insert(&stage, 2).await?;
    assert_eq!(stage.ask("jobs/claim", json!({"agent": "a"})).await?["items"][0]["payload"], 1);
    let sql = "update gleaner.queue set declaration = jsonb_set(declaration, '{payload}', '\"status\"'), changed_at = clock_timestamp() where name = 'jobs'";
    stage.client.batch_execute(sql).await?;
    let changed = Instant::now();
    loop {
        let item = stage.ask("jobs/claim", json!({"agent": "a"})).await?["items"][0].clone();
        if item["payload"] == "running" {
            return Ok(());
        }
        ensure!(changed.elapsed() < Duration::from_secs(20), "still as it was: {item}");
        stage.ask("jobs/release", json!({"key": item["key"], "lease": item["lease"]})).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test]
async fn those_who_wait_within_a_tenant_get_its_rows_and_no_others() -> Result<()> {
    let mut stage = stage().await?;
    let sql = "create table public.tasks (shop int, id bigint, status text not null default 'new', primary key (shop, id))";
    stage.client.batch_execute(sql).await?;
    let toml = "table = 'public.tasks'\ntenant = 'shop'\n
                status = { column = 'status', ready = 'new', running = 'busy', done = 'done', failed = 'bad', cancelled = 'off' }";
    let declaration = gleaner::Declaration::parse(toml, "tasks")?;
    gleaner::attach::attach(&mut stage.client, &declaration, toml, gleaner::attach::Options::default(), &|_| {}).await?;
    let wait = async |tenant: i32, seconds: i32| {
        let asked = json!({"agent": "a", "tenant": tenant, "wait_seconds": seconds});
        let (status, answer) = stage.call("tasks/claim", asked).await?;
        ensure!(status == 200, "{answer}");
        anyhow::Ok(answer["items"][0]["key"].clone())
    };
    let arriving = async {
        come(&stage, 3).await;
        stage.client.batch_execute("insert into public.tasks (shop, id) values (1, 11), (1, 12), (2, 21); notify gleaner, 'tasks'").await?;
        anyhow::Ok(())
    };
    let (one, other, two, three, ()) = tokio::try_join!(wait(1, 20), wait(1, 20), wait(2, 20), wait(3, 1), arriving)?;
    assert_eq!(HashSet::from([one.to_string(), other.to_string()]), HashSet::from(["\"11\"".to_owned(), "\"12\"".to_owned()]));
    assert_eq!((two, three), (json!("21"), Value::Null));
    Ok(())
}
