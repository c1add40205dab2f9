//! Reading a row by its key, updating it, and a claim: over HTTP, and by the same statement on a direct connection.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::json;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::asking::{self, Ask, Connection};
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

const CONNECTIONS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Read,
    Update,
    Claim,
}

impl Act {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "REST read of one row",
            Self::Update => "REST update of one row",
            Self::Claim => "RPC claim",
        }
    }

    /// The statement that one would write by hand.
    fn sql(self) -> &'static str {
        match self {
            Self::Read => "select * from activities where id = $1",
            Self::Update => "update activities set metadata = $2 where id = $1",
            Self::Claim => "select * from claim_next_pending_activity($1)",
        }
    }
}

/// The rows and their owner.
#[derive(Debug)]
struct Rows {
    keys: Vec<Uuid>,
    owner: i64,
}

pub(super) async fn measure(stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
    let lasting = Duration::from_secs(stage.seconds(10));
    for act in [Act::Read, Act::Update, Act::Claim] {
        // Alternating, so that a drift of the machine's speed affects both alike.
        let (mut by_hand, mut over_http) = (0.0, 0.0);
        for _ in 0..2 {
            let rows = Arc::new(fill(stage).await?);
            let askers = (0..CONNECTIONS).map(|place| ByHand::new(stage, act, &rows, place));
            by_hand += asking::flood(try_join_all(askers).await?, lasting).await? / 2.0;
            let rows = Arc::new(fill(stage).await?);
            let askers = (0..CONNECTIONS).map(|place| OverHttp::new(serving, act, &rows, place));
            over_http += asking::flood(try_join_all(askers).await?, lasting).await? / 2.0;
        }
        let name = act.name();
        report.figure(format!("the statement of {name}, {CONNECTIONS} connections"), by_hand, "/s");
        report.ratio(format!("{name}, {CONNECTIONS} connections"), over_http, "/s", by_hand, "the statement prepared by hand", None);
    }
    Ok(())
}

async fn fill(stage: &Stage) -> Result<Rows> {
    stage.clear().await?;
    let client = stage.connect().await?;
    let owner =
        client.query_one("insert into sales (first_name, email) values ('Bench', 'bench@example.com') returning id", &[]).await?.get(0);
    let n = stage.rows(200_000);
    let insert = format!(
        "insert into activities (type, sales_id, raw_data, metadata)
         select 'sms', $1, jsonb_build_object('source_type', 'text', 'content', repeat('x', 300)), '{{}}' from generate_series(1, {n}) returning id"
    );
    let keys = client.query(&insert, &[&owner]).await?.iter().map(|row| row.get(0)).collect();
    client.batch_execute("vacuum analyze activities").await?;
    client.batch_execute("checkpoint").await?;
    Ok(Rows { keys, owner })
}

/// Each client uses its own range of the rows, so that no two wait for each other's lock.
#[derive(Debug)]
struct Turns {
    rows: Arc<Rows>,
    next: usize,
}

impl Turns {
    fn of(rows: &Arc<Rows>, place: usize) -> Self {
        Self { rows: rows.clone(), next: rows.keys.len() / CONNECTIONS * place }
    }

    fn next(&mut self) -> (Uuid, usize) {
        self.next += 1;
        (self.rows.keys[self.next % self.rows.keys.len()], self.next)
    }
}

#[derive(Debug)]
struct ByHand {
    client: Client,
    statement: Statement,
    act: Act,
    turns: Turns,
}

impl ByHand {
    async fn new(stage: &Stage, act: Act, rows: &Arc<Rows>, place: usize) -> Result<Self> {
        let client = stage.connect().await?;
        let statement = client.prepare(act.sql()).await?;
        Ok(Self { client, statement, act, turns: Turns::of(rows, place) })
    }
}

impl Ask for ByHand {
    async fn ask(&mut self) -> Result<bool> {
        let (key, n) = self.turns.next();
        Ok(match self.act {
            Act::Read => self.client.query(&self.statement, &[&key]).await?.len() == 1,
            Act::Update => self.client.execute(&self.statement, &[&key, &json!({ "n": n })]).await? == 1,
            Act::Claim => self.client.query(&self.statement, &[&self.turns.rows.owner]).await?.len() == 1,
        })
    }
}

#[derive(Debug)]
struct OverHttp {
    connection: Connection,
    key: String,
    act: Act,
    turns: Turns,
}

impl OverHttp {
    async fn new(serving: &Serving, act: Act, rows: &Arc<Rows>, place: usize) -> Result<Self> {
        let connection = Connection::open(&serving.address).await?;
        Ok(Self { connection, key: serving.key.clone(), act, turns: Turns::of(rows, place) })
    }
}

impl Ask for OverHttp {
    async fn ask(&mut self) -> Result<bool> {
        let (key, n) = self.turns.next();
        let (request, body) = match self.act {
            Act::Read => (http::Request::get(format!("/rest/v1/activities?select=*&id=eq.{key}")), String::new()),
            Act::Update => (http::Request::patch(format!("/rest/v1/activities?id=eq.{key}")), json!({"metadata": {"n": n}}).to_string()),
            Act::Claim => (
                http::Request::post("/rest/v1/rpc/claim_next_pending_activity"),
                json!({"p_agent_sales_id": self.turns.rows.owner}).to_string(),
            ),
        };
        let request = request.header("apikey", &self.key).header("authorization", format!("Bearer {}", self.key));
        let answer = self.connection.send(request, body).await?;
        // An update returns nothing; the others return the row, or none.
        Ok(self.act == Act::Update || answer.len() > "[]".len())
    }
}
