//! A migrated database, channels in it, and a provider for tests.

use anyhow::{Context as _, Result};
use gleaner::Pool;
use gleaner_ingest::refusal::Why;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_ingest::{Channel, Inbound, Message, Provider, Refusal, Request, Sample, Setting, Settings, Verified};
use gleaner_intake::channels::{Channels, NewChannel, nest};
use gleaner_postgres::testing::TestDatabase;
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::world::database;

/// Two master keys, as an operator would write them.
pub(super) const KEY_ONE: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
pub(super) const KEY_TWO: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

pub(super) struct World {
    pub database: TestDatabase,
    pub client: Client,
    pub pool: Pool,
    pub channels: Channels,
}

pub(super) async fn world() -> Result<World> {
    let database = database().await?;
    let client = gleaner::connect(&database.url).await?;
    let pool = gleaner::pool(&database.url, 10)?;
    let channels = Channels::with_providers(pool.clone(), keys(KEY_ONE), PROVIDERS);
    Ok(World { database, client, pool, channels })
}

pub(super) fn keys(text: &str) -> MasterKeys {
    MasterKeys::parse(text, "test").expect("a key")
}

impl World {
    /// The same database, used by another process.
    pub(super) fn elsewhere(&self, master_key: &str) -> Channels {
        Channels::with_providers(self.pool.clone(), keys(master_key), PROVIDERS)
    }

    pub(super) async fn run(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.with_context(|| sql.to_owned())
    }

    pub(super) async fn text(&self, sql: &str) -> Result<Option<String>> {
        Ok(self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0))
    }

    /// Every row of all our tables, as in a dump.
    pub(super) async fn dump(&self) -> Result<String> {
        let tables = self
            .client
            .query(
                "select format('%I.%I', n.nspname, c.relname)
                 from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where c.relkind in ('r', 'p') and n.nspname in ('public', 'gleaner', 'auth')",
                &[],
            )
            .await?;
        let mut dump = String::new();
        for table in tables {
            let table: String = table.get(0);
            for row in self.client.query(&format!("select t::text from {table} as t"), &[]).await? {
                dump += &row.get::<_, String>(0);
                dump.push('\n');
            }
        }
        Ok(dump)
    }

    pub(super) async fn person(&self, email: &str, administrator: bool) -> Result<i64> {
        let row = self
            .client
            .query_one(
                "insert into sales (first_name, email, user_id, administrator) values ($1, $1, gen_random_uuid(), $2) returning id",
                &[&email, &administrator],
            )
            .await?;
        Ok(row.get(0))
    }
}

/// A channel of the test provider.
pub(super) fn parrot(name: &str, settings: &[(&str, &str)]) -> NewChannel {
    NewChannel { name: name.into(), provider_code: "parrot".into(), settings: settings_of(settings), ..NewChannel::default() }
}

pub(super) fn settings_of(settings: &[(&str, &str)]) -> Settings {
    nest(settings.iter().map(|(name, value)| ((*name).to_owned(), json!(value))))
}

pub(super) const PROVIDERS: &[&dyn Provider] = &[&Parrot];

/// Accepts any request that contains its token and the URL that it should call.
#[derive(Debug)]
pub(super) struct Parrot;

impl Provider for Parrot {
    fn code(&self) -> &'static str {
        "parrot"
    }

    fn title(&self) -> &'static str {
        "Parrot"
    }

    fn settings(&self) -> &'static [Setting] {
        &[
            Setting { name: "token", secret: true, required: true, about: "what it must say" },
            Setting { name: "basic_auth.username", secret: false, required: false, about: "who it is" },
            Setting { name: "basic_auth.password", secret: true, required: false, about: "its password" },
            Setting { name: "header", secret: false, required: false, about: "where it says it" },
        ]
    }

    fn check(&self, channel: &Channel) -> Vec<String> {
        let header = channel.settings.text("header").filter(|header| header.contains(' '));
        header.map(|_| "header must be one word".to_owned()).into_iter().collect()
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        let said = request.header("x-token").ok_or(Why::Unsigned)?;
        let called = request.header("x-url").ok_or(Why::Unsigned)?;
        let believed = channel.settings.both("token").contains(&said) && called == request.public_url();
        if believed { Ok(Verified::default()) } else { Err(Why::Mismatch.into()) }
    }

    fn normalise(&self, _: &Channel, _: &Request<'_>) -> Result<Inbound, Refusal> {
        Ok(Inbound::Nothing { remember: Vec::new(), warning: None })
    }

    fn compose(&self, channel: &Channel, url: &str, _: i64, _: &Message<'_>) -> Result<Sample, String> {
        let token = channel.settings.text("token").ok_or("it has no token")?;
        let mut headers = http::HeaderMap::new();
        headers.insert("x-token", token.parse().map_err(|_| "the token is no header value")?);
        headers.insert("x-url", url.parse().map_err(|_| "the URL is no header value")?);
        Ok(Sample { method: http::Method::POST, url: url.into(), headers, body: json!({"content": "hello"}).to_string().into_bytes() })
    }
}

/// The settings of a channel as JSON.
pub(super) fn settings(channel: &Channel) -> Value {
    channel.settings.as_map().clone().into()
}
