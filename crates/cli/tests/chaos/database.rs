//! The queue that is worked, and the history the database keeps of it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use gleaner::Declaration;
use gleaner::attach::{Options, attach};
use gleaner_postgres::testing::PrivateServer;
use tokio::sync::Mutex;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Row};

use crate::history::{Before, Event, History, Micros, Policy, What};

/// How long a claim lasts, by `harvest.toml`.
pub(crate) const HOLD: Duration = Duration::from_secs(3);

const TABLES: &str = include_str!("tables.sql");
const HISTORY: &str = include_str!("history.sql");
const DECLARATION: &str = include_str!("harvest.toml");

pub(crate) struct Database {
    pub server: Mutex<PrivateServer>,
    pub url: String,
    client: Mutex<Option<Client>>,
}

impl Database {
    pub(crate) async fn start() -> Result<Self> {
        // Durable: what was committed must survive a crash.
        let server = PrivateServer::start(true).await?;
        let url = server.url().to_owned();
        gleaner::migrate::migrate(&url, &|_| {}).await?;
        let database = Self { server: Mutex::new(server), url, client: Mutex::default() };
        let mut client = gleaner::connect(&database.url).await?;
        client.batch_execute(TABLES).await?;
        let declaration = Declaration::parse(DECLARATION, "harvest")?;
        attach(&mut client, &declaration, DECLARATION, Options::default(), &|_| {}).await?;
        client.batch_execute(HISTORY).await?;
        Ok(database)
    }

    /// The file behind its address.
    pub(crate) fn socket(&self) -> Result<PathBuf> {
        let config: tokio_postgres::Config = self.url.parse()?;
        let Some(Host::Unix(folder)) = config.get_hosts().first() else { bail!("{} is no socket", self.url) };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        Ok(folder.join(format!(".s.PGSQL.{port}")))
    }

    /// The same database by TCP, through a link.
    pub(crate) fn url_by(&self, port: u16) -> Result<String> {
        let config: tokio_postgres::Config = self.url.parse()?;
        let (user, name) = (config.get_user().context("a user")?, config.get_dbname().context("a database")?);
        Ok(format!("postgresql://{user}@127.0.0.1:{port}/{name}?sslmode=disable"))
    }

    /// Asks until there is an answer: the server is away at times.
    pub(crate) async fn ask(&self, sql: &str) -> Result<Vec<Row>> {
        let until = Instant::now() + Duration::from_secs(60);
        let mut kept = self.client.lock().await;
        loop {
            let answer = async {
                let client = match kept.take() {
                    Some(client) => client,
                    None => gleaner::connect(&self.url).await?,
                };
                let rows = client.query(sql, &[]).await?;
                anyhow::Ok((rows, client))
            };
            match tokio::time::timeout(Duration::from_secs(30), answer).await.context("no answer").and_then(|answer| answer) {
                Ok((rows, client)) => {
                    *kept = Some(client);
                    return Ok(rows);
                }
                Err(error) if Instant::now() > until => return Err(error.context(sql.to_owned())),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    pub(crate) async fn count(&self, sql: &str) -> Result<i64> {
        Ok(self.ask(sql).await?.first().context("a row")?.get(0))
    }

    /// Puts the items of these numbers in, once, however often it is asked to, and rings.
    pub(crate) async fn feed(&self, from: i64, to: i64) -> Result<()> {
        self.ask(&format!("select chaos.feed({from}, {to})")).await.map(drop)
    }

    /// Lets the engine accept every result, whoever holds the item and whether or not it is done: what the checker must notice.
    pub(crate) async fn remove_the_fence(&self) -> Result<()> {
        let client = gleaner::connect(&self.url).await?;
        let function = "gleaner.complete_harvest_unwatched(bigint[], bigint[], jsonb[])";
        let text: String = client.query_one(&format!("select pg_get_functiondef('{function}'::regprocedure)"), &[]).await?.get(0);
        let fence = text.find("and q.lease = u.lease").zip(text.find("and (v_trusted")).filter(|(from, to)| from < to);
        let (from, to) = fence.with_context(|| format!("there is no fence in {text}"))?;
        let without = format!("{}{}", &text[..from], &text[to..]);
        Ok(client.batch_execute(&without).await?)
    }

    /// Claims an item for a millisecond: its key and its lease.
    pub(crate) async fn claim_briefly(&self) -> Result<(i64, i64)> {
        let claim = "select id, lease from gleaner.claim_harvest('late', 1, p_hold => '1 millisecond')";
        let row = gleaner::connect(&self.url).await?.query_one(claim, &[]).await?;
        Ok((row.get(0), row.get(1)))
    }

    /// Waits until another agent has taken the item over, and completes it with the first lease.
    pub(crate) async fn complete_late(&self, (id, lease): (i64, i64)) -> Result<()> {
        let client = gleaner::connect(&self.url).await?;
        while client.query_one("select lease from public.harvest where id = $1", &[&id]).await?.get::<_, i64>(0) == lease {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        client.query("select from gleaner.complete_harvest_many(array[$1::bigint], array[$2::bigint])", &[&id, &lease]).await?;
        Ok(())
    }

    /// Everything that happened. `agents`: whose work each does first; they are known by their name and a number for each start.
    pub(crate) async fn history(&self, items: i64, agents: &[(String, Option<i64>)]) -> Result<History> {
        let client = gleaner::connect(&self.url).await?;
        let owners = client.query("select id, shared, stale_seconds from public.people", &[]).await?;
        let policy = |row: &Row| (row.get(0), Policy { shared: row.get(1), open_after: i64::from(row.get::<_, i32>(2)) * 1_000_000 });
        let late = client.query("select key::bigint, lease from gleaner.late_result where queue = 'harvest'", &[]).await?;
        Ok(History {
            items,
            owners: owners.iter().map(policy).collect(),
            agents: agents.iter().cloned().collect(),
            events: events(&client).await?,
            late: late.iter().map(|row| (row.get(0), row.get(1))).collect(),
        })
    }
}

async fn events(client: &Client) -> Result<Vec<Event>> {
    let micros = |column: &str| format!("(extract(epoch from {column}) * 1000000)::bigint");
    let sql = format!(
        "select {}, item, what, agent, lease, owner_id, {}, {}, lost, was, was_lease, {}, outcome from chaos.history order by seq",
        micros("at"),
        micros("created"),
        micros("due"),
        micros("was_due")
    );
    let event = |row: &Row| {
        let before = || Before { running: row.get::<_, Option<&str>>(9) == Some("running"), lease: row.get(10), due: row.get(11) };
        let due = || row.get::<_, Option<Micros>>(7).unwrap_or_default();
        let what = match row.get(2) {
            "arrived" => What::Arrived { owner: row.get(5), created: row.get(6), due: due() },
            "running" => {
                let agent: &str = row.get(3);
                What::Claimed { agent: agent.split('-').next().unwrap_or(agent).to_owned(), lease: row.get(4), before: before() }
            }
            "done" => What::Completed { before: before() },
            "ready" => What::Returned { due: due(), lost: row.get(8) },
            "answered" => What::Answered { lease: row.get(4), outcome: row.get(12) },
            _ => What::Ended,
        };
        Event { at: row.get(0), item: row.get(1), what }
    };
    Ok(client.query(&sql, &[]).await?.iter().map(event).collect())
}
