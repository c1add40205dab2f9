//! The fixture of the tests: a database with rows to claim, a directory for pipeline files, and an agent that works them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use gleaner::transport::DirectQueue;
use gleaner::worker::{Job, Poll, Tally, Wake};
use gleaner::{Pool, Queue, Worker};
use gleaner_agent::pipeline::{Fetch, Pipelines, Services, fetch};
use gleaner_postgres::testing::{self, TestDatabase};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_postgres::Client;
use uuid::Uuid;

pub(crate) struct World {
    pub client: Client,
    pub pool: Pool,
    pub url: String,
    pub folder: Folder,
    // Last, so that it outlives everything connected to it.
    _database: TestDatabase,
}

/// A directory that is removed with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("gleaner-agent-{}", Uuid::now_v7()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// What a command wrote to the file. Empty if there is no such file.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) async fn world() -> Result<World> {
    let migrate = async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop);
    let database = testing::server().database_from("migrated", migrate).await?;
    let (client, pool) = (gleaner::connect(&database.url).await?, gleaner::pool(&database.url, 8)?);
    Ok(World { client, pool, url: database.url.clone(), folder: Folder::new()?, _database: database })
}

/// A running agent.
pub(crate) struct Agent {
    pub task: tokio::task::JoinHandle<gleaner::Result<Tally>>,
    _stop: watch::Sender<bool>,
}

/// An agent on a runtime of its own, which the test can shut down to kill it.
pub(crate) struct Mortal(Option<tokio::runtime::Runtime>);

impl Drop for Mortal {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl World {
    /// Writes a pipeline file to the world's directory and loads it.
    pub(crate) fn pipelines(&self, text: &str) -> Result<Pipelines> {
        Ok(Pipelines::load(Some(&self.folder.write("pipelines.toml", text)?))?)
    }

    /// Rows from the database, files from this machine.
    pub(crate) fn direct(&self) -> Result<Arc<dyn Fetch>> {
        let here = format!("file://{}", self.folder.path().display());
        Ok(Arc::new(fetch::Direct::new(Some(self.pool.clone()), [here])?))
    }

    pub(crate) async fn activity(&self, kind: &str, raw_data: Value) -> Result<Uuid> {
        self.activity_at(kind, raw_data, None).await
    }

    /// An activity that was written at a certain time.
    pub(crate) async fn activity_at(&self, kind: &str, raw_data: Value, created_at: Option<&str>) -> Result<Uuid> {
        let sql = "insert into activities (type, raw_data, external_id, created_at)
             values ($1, $2, gen_random_uuid(), coalesce($3::text::timestamptz, now())) returning id";
        Ok(self.client.query_one(sql, &[&kind, &raw_data, &created_at]).await?.get(0))
    }

    pub(crate) async fn text(&self, kind: &str, content: &str) -> Result<Uuid> {
        self.activity(kind, json!({"source_type": "text", "content": content})).await
    }

    /// An agent that ends when nothing is due.
    pub(crate) async fn agent(&self, queue: &str, pipelines: &Pipelines, fetch: Arc<dyn Fetch>) -> Result<Agent> {
        let services = Services { fetch, models: pipelines.models().clone(), home: self.folder.path().to_owned() };
        let (stop, stopping) = watch::channel(false);
        let task = tokio::spawn(agent(self.pool.clone(), queue.to_owned(), pipelines.clone(), services, stopping));
        Ok(Agent { task, _stop: stop })
    }

    /// An agent that will be killed.
    pub(crate) fn mortal(&self, queue: &str, pipelines: &Pipelines, fetch: Arc<dyn Fetch>) -> Result<Mortal> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let services = Services { fetch, models: pipelines.models().clone(), home: self.folder.path().to_owned() };
        let (queue, pipelines) = (queue.to_owned(), pipelines.clone());
        let url = format!("{}{}application_name=mortal", self.url, if self.url.contains('?') { '&' } else { '?' });
        runtime.spawn(async move {
            let (_stop, stopping) = watch::channel(false);
            agent(gleaner::pool(&url, 4)?, queue, pipelines, services, stopping).await
        });
        Ok(Mortal(Some(runtime)))
    }

    /// Kills the agent as a power failure would: nothing is released, and there are no more heartbeats. Waits until PostgreSQL
    /// has closed its connections, because a claim in progress could otherwise still succeed.
    pub(crate) async fn kill(&self, agent: Mortal) -> Result<()> {
        drop(agent);
        let sql = "select count(*) from pg_stat_activity where application_name = 'mortal' and datname = current_database()";
        let end = Instant::now() + Duration::from_secs(30);
        while self.client.query_one(sql, &[]).await?.get::<_, i64>(0) > 0 {
            anyhow::ensure!(Instant::now() < end, "the killed agent is still connected");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Works what is due, once, with rows and files from this machine.
    pub(crate) async fn work(&self, queue: &str, pipelines: &Pipelines) -> Result<Tally> {
        self.work_with(queue, pipelines, self.direct()?).await
    }

    pub(crate) async fn work_with(&self, queue: &str, pipelines: &Pipelines, fetch: Arc<dyn Fetch>) -> Result<Tally> {
        let agent = self.agent(queue, pipelines, fetch).await?;
        Ok(tokio::time::timeout(Duration::from_secs(120), agent.task).await.context("the agent does not end")???)
    }

    /// Status, processed_data, metadata and progress of an activity.
    pub(crate) async fn row(&self, id: Uuid) -> Result<Row> {
        let sql = "select processing_status, processed_data, metadata, progress, exists (select from activity_failures where original_activity_id = $1)
             from activities where id = $1";
        let row = self.client.query_one(sql, &[&id]).await?;
        let value = |n: usize| row.get::<_, Option<Value>>(n).unwrap_or_default();
        Ok(Row { status: row.get(0), result: value(1), error: value(2)["error"].clone(), progress: value(3), is_dead: row.get(4) })
    }

    /// Waits until the row meets the condition.
    pub(crate) async fn until(&self, id: Uuid, is_so: impl Fn(&Row) -> bool) -> Result<Row> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let row = self.row(id).await?;
            if is_so(&row) {
                return Ok(row);
            }
            if Instant::now() > end {
                bail!("it never came so: {row:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Moves all times back by half an hour, as if there had been no heartbeat. The engine's role writes, so this does not count
    /// as an act.
    pub(crate) async fn let_leases_lapse(&self) -> Result<()> {
        let set = ["due_at", "open_at", "deadline_at", "locked_at"].map(|column| format!("{column} = {column} - interval '30 minutes'"));
        let sql = format!("begin; set local role gleaner_engine; update activities set {}; commit", set.join(", "));
        Ok(self.client.batch_execute(&sql).await?)
    }
}

async fn agent(pool: Pool, queue: String, pipelines: Pipelines, services: Services, stop: watch::Receiver<bool>) -> gleaner::Result<Tally> {
    let mut worker = Worker::builder(Arc::new(DirectQueue::new(Queue::open(&pool, &queue).await?, None)))
        .concurrency(2)
        .wake(Wake::PollOnly)
        .poll(Poll { base: Duration::from_millis(50), ..Poll::default() })
        .watch(Duration::from_millis(50))
        .grace(Duration::from_secs(1))
        .until_empty();
    if let Some(kinds) = pipelines.kinds(&queue) {
        worker = worker.kinds(kinds);
    }
    let handler = move |job: Job<Value>| {
        let (pipelines, services, queue) = (pipelines.clone(), services.clone(), queue.clone());
        async move { pipelines.run(&queue, job.item, job.context, &services).await }
    };
    worker.otherwise(handler).build().run_until(stop).await
}

#[derive(Debug)]
pub(crate) struct Row {
    pub status: String,
    pub result: Value,
    pub error: Value,
    pub progress: Value,
    /// It will not be retried.
    pub is_dead: bool,
}
