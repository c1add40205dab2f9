//! Everything that goes wrong, in an order that a seed decides.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::database::{Database, HOLD};
use crate::link::Way;
use crate::processes::{Agent, Server};

/// Less than an agent needs to notice that it slept: it brings its results, and they must be refused.
const NAP: Duration = Duration::from_millis(6500);
/// More than that: it looks first, and brings only what is still its own.
const SLEEP: Duration = Duration::from_secs(9);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// `kill -9` of an agent, and a new one after a while.
    Kill,
    /// SIGSTOP for longer than a lease, until somebody has taken over what it held; then SIGCONT.
    Nap,
    /// SIGSTOP for much longer.
    Sleep,
    Cut(Way),
    /// The server is killed, and started again after a while.
    KillServer,
    RestartServer,
    /// PostgreSQL is killed with all its sessions, and started again.
    CrashDatabase,
    /// One session is killed, on which PostgreSQL ends all others and recovers by itself.
    KillSession,
}

/// How often each happens in twenty thousand items.
const DECK: [(Trouble, usize); 9] = [
    (Trouble::Kill, 10),
    (Trouble::Nap, 7),
    (Trouble::Sleep, 2),
    (Trouble::Cut(Way::Silent), 4),
    (Trouble::Cut(Way::Refused), 4),
    (Trouble::KillServer, 2),
    (Trouble::RestartServer, 1),
    (Trouble::CrashDatabase, 2),
    (Trouble::KillSession, 1),
];

/// What trouble befalls.
pub(crate) struct World {
    pub database: Database,
    pub server: Option<Mutex<Server>>,
    pub agents: Vec<Mutex<Agent>>,
}

/// The troubles of one run, one after the other, some of them at the same time.
pub(crate) struct Troubles {
    world: Arc<World>,
    dice: StdRng,
    left: Vec<Trouble>,
    all: usize,
    under_way: JoinSet<Result<()>>,
    begun: Instant,
}

impl Troubles {
    /// Each kind at least once, however few the items.
    pub(crate) fn new(world: Arc<World>, seed: u64, items: i64) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let times = |often: usize| (often * usize::try_from(items).unwrap_or(0)).div_ceil(20_000);
        let mut left: Vec<Trouble> = DECK.iter().flat_map(|(trouble, often)| std::iter::repeat_n(*trouble, times(*often))).collect();
        left.shuffle(&mut dice);
        Self { world, dice, all: left.len(), left, under_way: JoinSet::new(), begun: Instant::now() }
    }

    /// Lets happen what should have happened by the time this part of the work was put in.
    pub(crate) fn happen(&mut self, part: f64) {
        let due = (part * (self.all + 1) as f64) as usize;
        while self.all - self.left.len() < due.min(self.all) {
            let Some(trouble) = self.left.pop() else { return };
            let (victim, time) = (self.dice.random_range(0..self.world.agents.len()), self.dice.random_range(0.5..4.0));
            let note = Note { trouble, victim, time: Duration::from_secs_f64(time) };
            eprintln!("{:6.1} s  {note}", self.begun.elapsed().as_secs_f64());
            let world = self.world.clone();
            self.under_way.spawn(async move { note.happen(&world).await.with_context(|| note.to_string()) });
        }
    }

    /// Waits until all is over.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.happen(1.0);
        while let Some(ended) = self.under_way.join_next().await {
            ended??;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Note {
    pub trouble: Trouble,
    pub victim: usize,
    pub time: Duration,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} (agent {}, {:.1} s)", self.trouble, self.victim, self.time.as_secs_f64())
    }
}

impl Note {
    pub(crate) async fn happen(&self, world: &World) -> Result<()> {
        // One thing at a time for each of them; what befalls different ones overlaps.
        match self.trouble {
            Trouble::Kill => {
                let mut agent = world.agents[self.victim].lock().await;
                agent.kill().await?;
                tokio::time::sleep(self.time / 2).await;
                agent.start()
            }
            Trouble::Nap => {
                let mut agent = world.agents[self.victim].lock().await;
                is_at_work(world, &agent.worker()).await?;
                agent.signal(Signal::SIGSTOP)?;
                taken_over(world, &agent.worker()).await?;
                agent.signal(Signal::SIGCONT)
            }
            Trouble::Sleep => {
                let mut agent = world.agents[self.victim].lock().await;
                agent.signal(Signal::SIGSTOP)?;
                tokio::time::sleep(SLEEP).await;
                agent.signal(Signal::SIGCONT)
            }
            Trouble::Cut(way) => {
                world.agents[self.victim].lock().await.link.cut(way, self.time).await;
                Ok(())
            }
            Trouble::KillServer | Trouble::RestartServer => {
                let Some(server) = &world.server else { return Ok(()) };
                let mut server = server.lock().await;
                server.end(if self.trouble == Trouble::KillServer { Signal::SIGKILL } else { Signal::SIGTERM }).await?;
                tokio::time::sleep(self.time / 2).await;
                server.start_again().await
            }
            Trouble::CrashDatabase => {
                let mut server = world.database.server.lock().await;
                server.crash().await?;
                tokio::time::sleep(self.time / 2).await;
                Ok(server.restart().await?)
            }
            Trouble::KillSession => {
                let _server = world.database.server.lock().await;
                let sql = "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1";
                let Some(session) = world.database.ask(sql).await?.first().map(|row| row.get::<_, i32>(0)) else { return Ok(()) };
                // It may have ended by itself meanwhile.
                let _ = kill(Pid::from_raw(session), Signal::SIGKILL);
                Ok(())
            }
        }
    }
}

/// Waits until it has begun something that takes a while; not for ever, for it may be cut off.
async fn is_at_work(world: &World, worker: &str) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(5);
    let slow =
        format!("select count(*) from public.harvest where status = 'running' and agent = '{worker}' and kind = 'slow' and started > 0");
    while Instant::now() < until && world.database.count(&slow).await? == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Waits for longer than a lease, and until somebody else has an item that this one held, but not for so long that it would notice.
async fn taken_over(world: &World, worker: &str) -> Result<()> {
    let until = Instant::now() + NAP;
    let held = format!("select array_agg(id)::text from public.harvest where status = 'running' and agent = '{worker}'");
    let held: Option<String> = world.database.ask(&held).await?.first().and_then(|row| row.get(0));
    tokio::time::sleep(HOLD + Duration::from_millis(500)).await;
    let Some(held) = held else { return Ok(()) };
    let taken = format!("select count(*) from public.harvest where id = any ('{held}') and agent <> '{worker}' and status = 'running'");
    while Instant::now() < until && world.database.count(&taken).await? == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
