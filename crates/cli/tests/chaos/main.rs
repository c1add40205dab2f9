//! Five agents, on the database and over the wire, while everything around them breaks: `kill -9`, SIGSTOP, the network, the
//! server, PostgreSQL. The database writes down what happened (`history.sql`), and afterwards `checker.rs` says whether every item
//! was completed exactly once by whoever held it, whether stale results were refused, and whether the order held.
//!
//! ```text
//! GLEANER_CHAOS_SEED=7      the troubles of an earlier run, which a failure prints
//! GLEANER_CHAOS_ITEMS=500   fewer items, and troubles in proportion
//! GLEANER_TEST_FULL=1       five times as many
//! ```

mod checker;
mod database;
mod history;
mod link;
mod processes;
mod trouble;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::sync::Mutex;

use crate::checker::{Class, Verdict, Violation, check};
use crate::database::Database;
use crate::link::{Far, Link};
use crate::processes::{Agent, Reach, Server};
use crate::trouble::{Troubles, World};

const ITEMS: i64 = 20_000;
/// Items put in at a time, and how many may be unfinished: what lost its holder stands in line behind what came before it, and should
/// have its turn while its holder may still come back.
const BATCH: i64 = 100;
const UNFINISHED: i64 = 500;
/// Without a single completion.
const PATIENCE: Duration = Duration::from_secs(90);

/// One in twenty takes a while, and has a checkpoint before it does.
const PIPELINES: &str =
    "[stages.linger]\ncommand = 'sleep 1; echo 1'\n[queues.harvest.kinds]\nquick = ['clean']\nslow = ['clean', 'linger']\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_breaks_every_item_is_completed_exactly_once_by_its_holder_and_in_order() -> Result<()> {
    let full = if std::env::var_os("GLEANER_TEST_FULL").is_some_and(|full| !full.is_empty() && full != "0") { 5 } else { 1 };
    let items = number("GLEANER_CHAOS_ITEMS").and_then(|items| items.try_into().ok()).unwrap_or(ITEMS * full);
    let seed = number("GLEANER_CHAOS_SEED").unwrap_or_else(rand::random);
    eprintln!("GLEANER_CHAOS_SEED={seed} GLEANER_CHAOS_ITEMS={items}");
    let run = Run::prepare(true).await?;
    let verdict = run.through(seed, items).await.with_context(|| format!("GLEANER_CHAOS_SEED={seed}, logs in {}", run.folder.display()))?;
    println!("{verdict}");
    ensure!(verdict.violations.is_empty(), "GLEANER_CHAOS_SEED={seed}, history in {}: {verdict}", run.folder.display());
    // The history had everything in it that could have gone wrong.
    ensure!(usize::try_from(items)? == verdict.accepted && verdict.takeovers > 0 && verdict.refused > 0, "{verdict}");
    ensure!([Class::Own, Class::Global, Class::Stale].iter().all(|class| verdict.claims.contains_key(class)), "{verdict}");
    std::fs::remove_dir_all(&run.folder)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_without_a_fence_is_found_out() -> Result<()> {
    let run = Run::prepare(false).await?;
    run.world.database.remove_the_fence().await?;
    run.world.database.feed(1, 100).await?;
    // Not by luck: agents check their leases when they wake, and mostly send nothing late.
    let first = run.world.database.claim_briefly().await?;
    run.start(&[0, 1]).await?;
    run.world.database.complete_late(first).await?;
    let verdict = run.verdict(0).await?;
    let stale = |violation: &Violation| matches!(violation, Violation::StaleAccepted { .. });
    ensure!(verdict.violations.iter().any(stale), "the late result was accepted, and the checker did not notice: {verdict}");
    run.stop(&[0, 1]).await?;
    std::fs::remove_dir_all(&run.folder)?;
    Ok(())
}

struct Run {
    world: Arc<World>,
    folder: PathBuf,
}

impl Run {
    async fn prepare(served: bool) -> Result<Self> {
        let folder = PathBuf::from(format!("/tmp/gleaner-chaos-{}-{served}", std::process::id()));
        std::fs::create_dir(&folder)?;
        std::fs::write(folder.join("pipelines.toml"), PIPELINES)?;
        let database = Database::start().await?;
        let server = if served { Some(Server::start(&database.url, &folder).await?) } else { None };
        let direct = Far::database(database.socket()?);
        let mut agents = Vec::new();
        // The fourth owner shares nothing; the fifth has nobody.
        for (name, owner, wire) in
            [("ada", Some(1), false), ("cyn", Some(3), false), ("ben", Some(2), true), ("dan", Some(4), true), ("eve", None, true)]
        {
            let far = match &server {
                Some(server) if wire => &server.far,
                _ => &direct,
            };
            let link = Link::open(far.clone()).await?;
            let reach = match &server {
                Some(server) if wire => Reach::Wire(format!("http://127.0.0.1:{}", link.port), server.key.clone()),
                _ => Reach::Direct(database.url_by(link.port)?),
            };
            agents.push(Mutex::new(Agent::new(name, owner, link, reach, &folder)));
        }
        let world = Arc::new(World { database, server: server.map(Mutex::new), agents });
        Ok(Self { world, folder })
    }

    async fn start(&self, which: &[usize]) -> Result<()> {
        for agent in which {
            self.world.agents[*agent].lock().await.start()?;
        }
        Ok(())
    }

    async fn stop(&self, which: &[usize]) -> Result<()> {
        for agent in which {
            self.world.agents[*agent].lock().await.stop().await?;
        }
        Ok(())
    }

    /// Puts the items in as they are worked, with troubles in between, and waits until all are done.
    async fn through(&self, seed: u64, items: i64) -> Result<Verdict> {
        let everybody: Vec<usize> = (0..self.world.agents.len()).collect();
        self.start(&everybody).await?;
        let mut troubles = Troubles::new(self.world.clone(), seed, items);
        let (mut fed, mut done, mut moved) = (0, 0, Instant::now());
        while done < items {
            if fed < items && fed - done < UNFINISHED {
                let to = (fed + BATCH).min(items);
                self.world.database.feed(fed + 1, to).await?;
                fed = to;
                troubles.happen(fed as f64 / items as f64);
            } else {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            self.ensure_none_ended()?;
            let now = self.world.database.count("select count(*) from public.harvest where status = 'done'").await?;
            if now > done {
                (done, moved) = (now, Instant::now());
            }
            ensure!(moved.elapsed() < PATIENCE, "{done} of {fed} items are done, and no more are: {}", self.left().await?);
        }
        troubles.end().await?;
        self.stop(&everybody).await?;
        let wrong = "select count(*) from public.harvest where result ->> 'transcript' is distinct from payload ->> 'content'";
        ensure!(self.world.database.count(wrong).await? == 0, "items have the results of others");
        self.verdict(items).await
    }

    /// Those in trouble are looked at by their trouble.
    fn ensure_none_ended(&self) -> Result<()> {
        self.world.agents.iter().filter_map(|agent| agent.try_lock().ok()).try_for_each(|mut agent| agent.lives())
    }

    async fn verdict(&self, items: i64) -> Result<Verdict> {
        let mut agents = Vec::new();
        for agent in &self.world.agents {
            let agent = agent.lock().await;
            agents.push((agent.name.to_owned(), agent.owner));
        }
        let history = self.world.database.history(items, &agents).await?;
        let verdict = check(&history);
        if !verdict.violations.is_empty() {
            let told: Vec<String> = history.events.iter().map(|event| format!("{event:?}\n")).collect();
            std::fs::write(self.folder.join("history"), told.concat())?;
        }
        Ok(verdict)
    }

    /// What is not done, for people.
    async fn left(&self) -> Result<String> {
        let sql = "select coalesce(string_agg(concat_ws(' ', id, status, owner_id, kind, agent, due_at, lost, error), E'\\n'), '')
                   from (select * from public.harvest where status <> 'done' limit 20) as h";
        Ok(self.world.database.ask(sql).await?.first().map(|row| row.get(0)).unwrap_or_default())
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
