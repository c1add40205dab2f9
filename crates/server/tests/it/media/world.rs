//! The setup of these tests: a database, a provider, and the route that serves media.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::notify::Notifier;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_intake::channels::Channels;
use gleaner_intake::files::Files;
use gleaner_intake::mailboxes::{Gmail, Google};
use gleaner_intake::media::{Media, Options};
use gleaner_intake::webhooks::{Committer, How, Newcomers, Parts};
use gleaner_supabase::access::Access;
use serde_json::{Value, json};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::media::provider::LocalProvider;
use crate::world::{Home, database};

const SECRET: &str = "a secret of more than thirty-two characters";

pub(super) struct World {
    pub provider: LocalProvider,
    pub client: Client,
    pub pool: gleaner::Pool,
    pub files: Files,
    pub base: String,
    pub service: String,
    _home: Home,
}

/// A world in which this machine's address is allowed by the operator.
pub(super) async fn world() -> Result<World> {
    world_with(|_| {}).await
}

/// A world in which it is not.
pub(super) async fn strict_world() -> Result<World> {
    world_with(|options| options.allow_private.clear()).await
}

pub(super) async fn world_with(change: impl FnOnce(&mut Options)) -> Result<World> {
    let database = database().await?;
    let pool = gleaner::pool(&database.url, 8)?;
    let home = Home::new()?;
    let files = Files::open(&home.0, None)?;
    let (committer, _) =
        Committer::start(&pool, &Notifier::new(pool.clone()), How { tasks: 1, group: 256, within: Duration::from_secs(10) });
    let (newcomers, _) = Newcomers::start(pool.clone());
    let channels = Channels::new(pool.clone(), MasterKeys::generate());
    let parts = Parts { pool: pool.clone(), channels: channels.clone(), files: files.clone(), committer, newcomers };
    let gmail = Arc::new(Gmail::new(Google::default(), parts)?);
    let provider = LocalProvider::start().await?;
    let mut options =
        Options { allow_private: vec!["127.0.0.0/8".parse()?], limit: 4000, idle: Duration::from_millis(800), ..Options::default() };
    change(&mut options);
    let media = Arc::new(Media::new(options, pool.clone(), channels, files.clone(), gmail)?);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let router = axum::Router::from(gleaner_intake::media::router(media, Access::new(SECRET, "the test")?));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = gleaner::connect(&database.url).await?;
    let service = token("service_role", Uuid::nil())?;
    Ok(World { provider, client, pool, files, base, service, _home: home })
}

pub(super) fn token(role: &str, user: Uuid) -> Result<String> {
    let claims = json!({"role": role, "sub": user, "exp": 4_000_000_000_i64});
    Ok(jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &jsonwebtoken::EncodingKey::from_secret(SECRET.as_bytes()))?)
}

/// A response.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    /// None when the connection broke in the middle.
    pub body: Option<Vec<u8>>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.body.as_deref().unwrap_or_default()).into_owned()
    }
}

impl World {
    pub(super) async fn channel(&self, provider: &str, settings: Value) -> Result<Uuid> {
        let row = self
            .client
            .query_one(
                "insert into ingestion_providers (provider_code, name, config) values ($1, gen_random_uuid(), $2) returning id",
                &[&provider, &settings],
            )
            .await?;
        Ok(row.get(0))
    }

    pub(super) async fn activity(&self, channel: Option<Uuid>, raw_data: Value, metadata: Value) -> Result<Uuid> {
        let row = self
            .client
            .query_one(
                "insert into activities (type, provider_id, raw_data, metadata, external_id) values ('call', $1, $2, $3, gen_random_uuid()) returning id",
                &[&channel, &raw_data, &metadata],
            )
            .await?;
        Ok(row.get(0))
    }

    /// An activity whose files a webhook of the channel announced: each is a place, such as `{"url": "https://…"}`.
    pub(super) async fn announced(&self, channel: Uuid, places: &[Value]) -> Result<Uuid> {
        let activity = self.activity(Some(channel), json!({}), json!({})).await?;
        let media: Value = places.iter().map(|place| json!({"place": place})).collect();
        self.client
            .execute(
                "insert into gleaner.media_reference (activity_id, provider_id, media) values ($1, $2, $3)",
                &[&activity, &channel, &media],
            )
            .await?;
        Ok(activity)
    }

    /// An activity whose content is at this address, without a channel.
    pub(super) async fn at(&self, url: &str) -> Result<Uuid> {
        self.activity(None, json!({"source_type": "url", "content": url}), json!({})).await
    }

    pub(super) async fn get(&self, activity: Uuid, n: &str) -> Result<Answer> {
        self.get_with(activity, n, &self.service, None).await
    }

    pub(super) async fn get_with(&self, activity: Uuid, n: &str, token: &str, range: Option<&str>) -> Result<Answer> {
        let mut request = reqwest::Client::new().get(format!("{}/v1/media/{activity}/{n}", self.base));
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        if let Some(range) = range {
            request = request.header("range", range);
        }
        let answer = request.send().await.context("ask for the file")?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Ok(Answer { status, headers, body: answer.bytes().await.ok().map(|bytes| bytes.to_vec()) })
    }

    /// Requests the first file of an activity at this address.
    pub(super) async fn fetch(&self, url: &str) -> Result<Answer> {
        self.get(self.at(url).await?, "0").await
    }
}
