//! The setup of these tests: a database, a local Google, and the part of the server that reads mailboxes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::notify::Notifier;
use gleaner_http::Caller;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_intake::channels::{Channels, NewChannel, nest};
use gleaner_intake::files::Files;
use gleaner_intake::mailboxes::Gmail;
use gleaner_intake::mailboxes::Report;
use gleaner_intake::webhooks::{Committer, How, Newcomers, Parts};
use gleaner_supabase::access::Access;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::gmail::google::LocalGoogle;
use crate::world::{Home, database};

pub(super) struct World {
    pub google: LocalGoogle,
    pub gmail: Arc<Gmail>,
    pub channels: Channels,
    pub client: Client,
    pub url: String,
    pub home: Home,
    parts: Parts,
    stop: watch::Sender<bool>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// A world in which a server reads mailboxes.
pub(super) async fn world() -> Result<World> {
    let world = idle_world().await?;
    world.read_mailboxes(&world.gmail);
    Ok(world)
}

/// A world in which no server reads mailboxes yet.
pub(super) async fn idle_world() -> Result<World> {
    let database = database().await?;
    let pool = gleaner::pool(&database.url, 16)?;
    let home = Home::new()?;
    let (committer, _) =
        Committer::start(&pool, &Notifier::new(pool.clone()), How { tasks: 1, group: 256, within: Duration::from_secs(10) });
    let (newcomers, _) = Newcomers::start(pool.clone());
    let channels = Channels::new(pool.clone(), MasterKeys::generate());
    let files = Files::open(&home.0, None)?;
    let parts = Parts { pool: pool.clone(), channels: channels.clone(), files, committer, newcomers };
    let google = LocalGoogle::start().await?;
    let gmail = Arc::new(Gmail::new(google.settings(), parts.clone())?);
    let stop = watch::channel(false).0;
    let client = gleaner::connect(&database.url).await?;
    Ok(World { google, gmail, channels, client, url: database.url, home, parts, stop })
}

impl World {
    /// Another server on the same database.
    pub(super) fn another(&self) -> Result<Arc<Gmail>> {
        Ok(Arc::new(Gmail::new(self.google.settings(), self.parts.clone())?))
    }

    pub(super) fn read_mailboxes(&self, gmail: &Arc<Gmail>) -> mpsc::Sender<Uuid> {
        let (hints, hinted) = mpsc::channel(8);
        tokio::spawn(gmail.clone().run(hinted, self.stop.subscribe()));
        hints
    }

    /// Like [`Self::read_mailboxes`], until the returned sender is set.
    pub(super) fn read_until_stopped(&self, gmail: &Arc<Gmail>) -> watch::Sender<bool> {
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(gmail.clone().run(mpsc::channel(1).1, stopped));
        stop
    }

    /// A channel with a grant, and `more` settings.
    pub(super) async fn channel(&self, more: Value) -> Result<Uuid> {
        let mut settings =
            json!({"client_id": "client", "client_secret": "shh-client", "oauth_token": "1//refresh-secret", "poll_minutes": 60});
        for (name, value) in more.as_object().context("settings")? {
            settings[name] = value.clone();
        }
        let settings = settings.as_object().context("settings")?.clone();
        let new = NewChannel { name: "mail".into(), provider_code: "gmail".into(), settings: nest(settings), ..NewChannel::default() };
        Ok(self.channels.add(new).await?.channel.id)
    }

    /// Requests a poll and waits for its end.
    pub(super) async fn look(&self) -> Result<Report> {
        let asked = self.gmail.ask(&Caller::Ourselves, None).await?;
        let mut reports = self.gmail.wait_for(&asked, Duration::from_secs(30)).await?;
        reports.pop().context("no channel was asked")
    }

    /// Makes a poll that must succeed. Returns how many messages were new.
    pub(super) async fn stored(&self) -> Result<i32> {
        let report = self.look().await?;
        anyhow::ensure!(report.outcome == "read", "{report:?}");
        Ok(report.stored)
    }

    pub(super) async fn text(&self, sql: &str) -> Result<Option<String>> {
        Ok(self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0))
    }

    pub(super) async fn count(&self, sql: &str) -> Result<i64> {
        Ok(self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0))
    }

    /// Waits until the query returns true.
    pub(super) async fn wait_until(&self, sql: &str) -> Result<()> {
        for _ in 0..600 {
            if self.client.query_one(sql, &[]).await.with_context(|| sql.to_owned())?.get(0) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let polls = self.text("select string_agg(p::text, ' ') from gleaner.polls as p").await?;
        anyhow::bail!("never came true: {sql}; {polls:?}")
    }

    pub(super) async fn activities(&self) -> Result<i64> {
        self.count("select count(*) from activities").await
    }

    pub(super) async fn history_id(&self) -> Result<Option<String>> {
        self.text("select history_id from gleaner.polls").await
    }
}

/// The routes, without the rest of the server.
pub(super) struct App {
    pub base: String,
    pub service: String,
    pub anon: String,
    pub signed_in: String,
}

const SECRET: &str = "a secret of more than thirty-two characters";

pub(super) async fn app(world: &World) -> Result<App> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let router = axum::Router::from(gleaner_intake::mailboxes::router(world.gmail.clone(), Access::new(SECRET, "the test")?));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let token = |role: &str| {
        let claims = json!({"role": role, "sub": Uuid::now_v7(), "exp": 4_000_000_000_i64});
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &jsonwebtoken::EncodingKey::from_secret(SECRET.as_bytes()))
    };
    Ok(App { base, service: token("service_role")?, anon: token("anon")?, signed_in: token("authenticated")? })
}

impl App {
    /// Requests a poll. Returns status and body.
    pub(super) async fn fetch(&self, token: &str, body: &str) -> Result<(u16, Value)> {
        let mut request = reqwest::Client::new().post(format!("{}/functions/v1/fetch-gmail-updates", self.base)).body(body.to_owned());
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }
}
