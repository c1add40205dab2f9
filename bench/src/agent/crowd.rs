//! Agents in another process, which is this program started again.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use futures_util::future::try_join_all;
use gleaner::transport::{Direct, Endpoint};
use gleaner::worker::{Builder, Control, Job, Tally, Worker};
use gleaner_agent::wire::{Settings, Wire};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use crate::peer::Reader;
use crate::raw::Finish;
use crate::serving::Serving;
use crate::stage::Stage;
use crate::wire::subscribers::raise_limit;

/// As many as the engine's own drain claims and completes at once.
const AT_ONCE: usize = crate::drain::BATCH as usize;
/// For concurrent claims and completions.
const CONNECTIONS: usize = 4;

/// What agents are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Work all there is, as fast as it goes, and end.
    Drain,
    /// Wait for work that does not come.
    Idle,
    /// Be pgmq's loop instead: read and delete all there is, and end.
    Pgmq,
}

/// Where agents find their queue.
#[derive(Debug, Clone)]
pub(crate) enum At {
    Database(String),
    Server { url: String, key: String },
}

impl At {
    pub(crate) fn database(stage: &Stage) -> Self {
        Self::Database(stage.url.clone())
    }

    pub(crate) fn server(serving: &Serving) -> Self {
        Self::Server { url: format!("http://{}", serving.address), key: serving.key.clone() }
    }

    pub(crate) fn place(&self) -> Result<Arc<dyn Endpoint>> {
        Ok(match self {
            Self::Database(url) => Arc::new(Direct::new(url, CONNECTIONS)?),
            Self::Server { url, key } => {
                Arc::new(Wire::connect(Settings { url: url.clone(), service_key: Some(key.clone()), ..Settings::default() })?)
            }
        })
    }
}

/// Agents in another process.
#[derive(Debug)]
pub(crate) struct Crowd {
    child: Child,
    orders: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Crowd {
    /// Returns when all are ready.
    pub(crate) async fn gather(at: &At, agents: usize, task: Task) -> Result<Self> {
        let name = task.to_possible_value().context("a name")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--agents", &agents.to_string(), "--task", name.get_name(), "--at"]);
        match at {
            At::Database(url) => command.arg(url),
            At::Server { url, key } => command.arg(url).env("GLEANER_BENCH_KEY", key),
        };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let (orders, said) = (child.stdin.take().context("its input")?, child.stdout.take().context("its output")?);
        let mut crowd = Self { child, orders, said: BufReader::new(said).lines() };
        ensure!(crowd.said.next_line().await?.as_deref() == Some("ready"), "the agents did not come");
        Ok(crowd)
    }

    /// Starts the work.
    pub(crate) async fn go(&mut self) -> Result<()> {
        Ok(self.orders.write_all(b"go\n").await?)
    }

    /// Waits until the agents have ended, or stops idle ones; returns how many items they completed.
    pub(crate) async fn end(mut self) -> Result<u64> {
        drop(self.orders);
        let completed = self.said.next_line().await?.context("the agents did not say what they did")?.parse()?;
        ensure!(self.child.wait().await?.success(), "the agents failed");
        Ok(completed)
    }
}

/// The other process: gets ready, reports that, works when it receives the start signal, and reports how much it did.
pub(crate) async fn become_agents(at: &str, agents: usize, task: Task) -> Result<()> {
    raise_limit()?;
    let at = match at.starts_with("http") {
        true => At::Server { url: at.to_owned(), key: std::env::var("GLEANER_BENCH_KEY")? },
        false => At::Database(at.to_owned()),
    };
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let (stop, stopped) = watch::channel(false);
    if let (Task::Pgmq, At::Database(url)) = (task, &at) {
        let reader = Reader::connect(url, Finish::Delete).await?;
        println!("ready");
        ensure!(orders.next_line().await?.as_deref() == Some("go"), "no order to begin came");
        println!("{}", reader.drain(|_| true).await?);
        return Ok(());
    }
    let tallies = match task {
        Task::Pgmq => anyhow::bail!("pgmq has no server"),
        Task::Drain => {
            let worker = noop(&at, Control::new(AT_ONCE)).await?.until_empty().build();
            println!("ready");
            ensure!(orders.next_line().await?.as_deref() == Some("go"), "no order to begin came");
            vec![worker.run_until(stopped).await?]
        }
        Task::Idle => {
            let mut workers = Vec::with_capacity(agents);
            let mut controls = Vec::with_capacity(agents);
            while workers.len() < agents {
                // A few at a time, because start-up speed is not measured.
                let some: Vec<Control> = (workers.len()..agents).take(25).map(|_| Control::new(4)).collect();
                let built = try_join_all(some.iter().map(|control| noop(&at, control.clone()))).await?;
                workers.extend(built.into_iter().map(|builder| tokio::spawn(builder.build().run_until(stopped.clone()))));
                controls.extend(some);
            }
            // All have polled once, and receive notifications.
            while !controls.iter().map(Control::stats).all(|stats| stats.polls > 0 && stats.push) {
                tokio::time::sleep(Duration::from_millis(100)).await;
                ensure!(!workers.iter().any(tokio::task::JoinHandle::is_finished), "an agent ended");
            }
            println!("ready");
            while orders.next_line().await?.is_some() {}
            stop.send_replace(true);
            try_join_all(workers).await?.into_iter().collect::<Result<Vec<Tally>, _>>()?
        }
    };
    println!("{}", tallies.iter().map(|tally| tally.completed).sum::<u64>());
    Ok(())
}

/// An agent whose handler does nothing, with its own connection.
async fn noop(at: &At, control: Control) -> Result<Builder> {
    let transport = at.place()?.open("jobs").await?;
    Ok(Worker::builder(transport).control(control).otherwise(|_: Job<Value>| async { Ok(None::<Value>) }))
}
