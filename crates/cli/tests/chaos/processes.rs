//! The real programs: agents that come and go, and the server some of them speak to.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::link::{Far, Link};

const GLEANER: &str = env!("CARGO_BIN_EXE_gleaner");

/// Looks often, so that work is found again soon after trouble, and keeps items in hand, so that there is something to lose.
const SETTINGS: &str = "--status off --concurrency 16 --prefetch 16 --watch 1s --grace 10s --poll-base 200ms --poll-max 1s --poll-pushed-base 500ms --poll-pushed-max 2s";

fn gleaner(home: &Path) -> Command {
    let mut command = Command::new(GLEANER);
    for name in ["DATABASE_URL", "SUPABASE_URL", "SUPABASE_SERVICE_ROLE_KEY", "GLEANER_KEY", "RUST_LOG", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    command.env("GLEANER_HOME", home).stdin(Stdio::null()).kill_on_drop(true);
    command
}

fn signal(child: &Child, signal: Signal) -> Result<()> {
    let pid = child.id().context("it has ended")?;
    Ok(kill(Pid::from_raw(i32::try_from(pid)?), signal)?)
}

fn log(folder: &Path, name: &str) -> Result<File> {
    Ok(OpenOptions::new().create(true).append(true).open(folder.join(format!("{name}.log")))?)
}

/// How an agent reaches its queue.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    /// By this URL of the database.
    Direct(String),
    /// By the server behind this address, with this key.
    Wire(String, String),
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub name: &'static str,
    /// Whose work it does first.
    pub owner: Option<i64>,
    pub link: Link,
    reach: Reach,
    folder: PathBuf,
    starts: u32,
    child: Option<Child>,
}

impl Agent {
    pub(crate) fn new(name: &'static str, owner: Option<i64>, link: Link, reach: Reach, folder: &Path) -> Self {
        Self { name, owner, link, reach, folder: folder.to_owned(), starts: 0, child: None }
    }

    /// Known to the database by its name and how often it was started.
    pub(crate) fn worker(&self) -> String {
        format!("{}-{}", self.name, self.starts)
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        self.starts += 1;
        let mut command = gleaner(&self.folder.join(self.name));
        command.args(["agent", "run", "--name", self.name, "--worker", &self.worker(), "--pipelines"]);
        command.arg(self.folder.join("pipelines.toml")).args(SETTINGS.split(' '));
        if let Some(owner) = self.owner {
            command.args(["--owner", &owner.to_string()]);
        }
        match &self.reach {
            Reach::Direct(url) => command.env("DATABASE_URL", url),
            Reach::Wire(url, key) => command.env("SUPABASE_URL", url).env("SUPABASE_SERVICE_ROLE_KEY", key),
        };
        command.stdout(Stdio::null()).stderr(log(&self.folder, self.name)?);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Trouble is no reason to end.
    pub(crate) fn lives(&mut self) -> Result<()> {
        let child = self.child.as_mut().context("it was not started")?;
        match child.try_wait()? {
            Some(status) => bail!("agent {} ended by itself, with {status}", self.name),
            None => Ok(()),
        }
    }

    pub(crate) fn signal(&mut self, what: Signal) -> Result<()> {
        self.lives()?;
        signal(self.child.as_ref().context("it was not started")?, what)
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.lives()?;
        Ok(self.child.take().context("it was not started")?.kill().await?)
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        self.signal(Signal::SIGTERM)?;
        let mut child = self.child.take().context("it was not started")?;
        let status =
            tokio::time::timeout(Duration::from_secs(60), child.wait()).await.with_context(|| format!("{} does not end", self.name))??;
        ensure!(status.success(), "agent {} ended with {status}", self.name);
        Ok(())
    }
}

/// `gleaner serve`.
#[derive(Debug)]
pub(crate) struct Server {
    pub far: Far,
    pub key: String,
    database: String,
    folder: PathBuf,
    child: Option<Child>,
}

impl Server {
    pub(crate) async fn start(database: &str, folder: &Path) -> Result<Self> {
        let status = gleaner(&folder.join("server")).args(["status", "-o", "env"]).env("DATABASE_URL", database).output().await?;
        let text = String::from_utf8(status.stdout)?;
        let key = text.lines().find_map(|line| line.strip_prefix("SERVICE_ROLE_KEY=")).context("a key")?.trim_matches('"').to_owned();
        let mut server = Self { far: Far::server(), key, database: database.to_owned(), folder: folder.to_owned(), child: None };
        server.start_again().await?;
        Ok(server)
    }

    /// `kill -9`, or an orderly end.
    pub(crate) async fn end(&mut self, how: Signal) -> Result<()> {
        let mut child = self.child.take().context("it was not started")?;
        ensure!(child.try_wait()?.is_none(), "the server ended by itself");
        signal(&child, how)?;
        let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await.context("the server does not end")??;
        ensure!(how == Signal::SIGKILL || ended.success(), "the server ended with {ended}");
        Ok(())
    }

    /// The database may be away just then: whoever runs a server starts it again.
    pub(crate) async fn start_again(&mut self) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match self.try_start().await {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }

    async fn try_start(&mut self) -> Result<()> {
        let mut command = gleaner(&self.folder.join("server"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("DATABASE_URL", &self.database);
        let mut child = command.stdout(Stdio::piped()).stderr(log(&self.folder, "server")?).spawn()?;
        let mut said = BufReader::new(child.stdout.take().context("its output")?).lines();
        let address = loop {
            let line = said.next_line().await?.context("the server did not start")?;
            if let Some((_, address)) = line.split_once("Listening on ") {
                break address.parse()?;
            }
        };
        // What it says later is read, so that it never waits for a reader.
        tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
        self.far.moves_to(address);
        self.child = Some(child);
        Ok(())
    }
}
