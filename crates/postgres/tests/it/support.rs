//! Shared test support: a scratch directory, and a parent process that can be killed.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use gleaner_postgres::{Home, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};

/// A directory for one test. It is removed with the process: a file system is slow to create files right after many were deleted,
/// and every cluster is a thousand files.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        static ALL: OnceLock<(PathBuf, Child)> = OnceLock::new();
        let (all, _) = ALL.get_or_init(|| scratch_of_process().expect("a directory for temporary files"));
        let path = all.join(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn home(&self) -> Result<Home> {
        Ok(Home::at(self.0.join("home"))?)
    }

    pub(crate) fn options(&self) -> Result<Options> {
        Ok(Options::new(self.home()?))
    }
}

/// The directory, and a shell that removes it once we have ended and our end of the pipe is closed.
fn scratch_of_process() -> Result<(PathBuf, Child)> {
    let path = std::env::temp_dir().join(format!("gleaner-it-{}", std::process::id()));
    fs::create_dir(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    let janitor = Command::new("sh")
        .args(["-c", "read -r _; rm -rf -- \"$0\""])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    Ok((path, janitor))
}

/// Copies in another process: a file that we have open for writing could not be executed while another test forks.
pub(crate) fn copy_program(from: &Path, to: &Path) -> Result<()> {
    anyhow::ensure!(Command::new("cp").arg(from).arg(to).status()?.success(), "copy {}", from.display());
    Ok(())
}

/// A script that runs the program, put in place as a package manager does it. In another process, for the same reason.
pub(crate) fn install_program(program: &Path, at: &Path) -> Result<()> {
    let line = "printf '#!/bin/sh\\nexec %s \"$@\"\\n' \"$0\" > \"$1.new\" && chmod 755 \"$1.new\" && mv \"$1.new\" \"$1\"";
    anyhow::ensure!(Command::new("sh").args(["-c", line]).arg(program).arg(at).status()?.success(), "install {}", at.display());
    Ok(())
}

pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// A user that is not root: `nobody` when the tests run as root, else the current user.
pub(crate) fn ordinary_user() -> Result<User> {
    let user = if is_root() { User::from_name("nobody")? } else { User::from_uid(nix::unistd::geteuid())? };
    user.context("an ordinary user")
}

/// `gleaner-postgres` in its own process, ready.
#[derive(Debug)]
pub(crate) struct Parent {
    child: Child,
    pub(crate) url: String,
}

impl Parent {
    pub(crate) fn start(home: &Home) -> Result<Self> {
        Self::run(Command::new(env!("CARGO_BIN_EXE_gleaner-postgres")), home)
    }

    /// Starts it as an ordinary user, with a copy of the program that this user can reach.
    pub(crate) fn start_as(user: &User, scratch: &Scratch, home: &Home) -> Result<Self> {
        let program = scratch.path().join("gleaner-postgres");
        copy_program(Path::new(env!("CARGO_BIN_EXE_gleaner-postgres")), &program)?;
        let mut command = Command::new(program);
        command.current_dir("/");
        if is_root() {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
        Self::run(command, home)
    }

    pub(crate) fn run(mut command: Command, home: &Home) -> Result<Self> {
        let mut child =
            command.env("GLEANER_HOME", home.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut url = String::new();
        BufReader::new(child.stdout.take().context("stdout")?).read_line(&mut url)?;
        if url.is_empty() {
            let mut errors = String::new();
            child.stderr.take().context("stderr")?.read_to_string(&mut errors)?;
            child.wait()?;
            bail!("{errors}");
        }
        Ok(Self { child, url: url.trim().to_owned() })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.child.id().try_into()?), signal)?)
    }

    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        Ok(self.child.wait()?)
    }

    /// Kills it and waits only for its own end.
    pub(crate) fn kill_nine(mut self) -> Result<()> {
        self.signal(Signal::SIGKILL)?;
        self.wait()?;
        Ok(())
    }

    pub(crate) fn stop(mut self) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        self.wait()
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.signal(Signal::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

/// The server processes (not their sessions) whose command line names this data directory.
pub(crate) fn servers_on(home: &Home) -> Result<Vec<u32>> {
    let data = home.data();
    let wanted = data.to_str().context("a path of text")?;
    let output = Command::new("ps").args(["-eo", "pid=,ppid=,args="]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let servers = text.lines().filter(|line| {
        let mut words = line.split_whitespace().skip(2);
        words.next().is_some_and(|program| program.ends_with("/postgres")) && words.any(|word| word == wanted)
    });
    let ids = |line: &str| -> Result<(u32, u32)> {
        let mut words = line.split_whitespace();
        Ok((words.next().context("a pid")?.parse()?, words.next().context("a parent's pid")?.parse()?))
    };
    let servers = servers.map(ids).collect::<Result<Vec<_>>>()?;
    // A child that was forked a moment ago still has the arguments of the server.
    let is_child = |parent: u32| servers.iter().any(|(server, _)| *server == parent);
    Ok(servers.iter().filter(|(_, parent)| !is_child(*parent)).map(|(server, _)| *server).collect())
}

/// Waits for something that happens soon, or fails with what did not happen.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds()? {
        anyhow::ensure!(Instant::now() < end, "{what}: not within 20 s");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// One value, as text.
pub(crate) async fn value(url: &str, query: &str) -> Result<String> {
    let client = gleaner_postgres::testing::connect(url).await?;
    for message in client.simple_query(query).await? {
        if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
            return Ok(row.get(0).unwrap_or_default().to_owned());
        }
    }
    bail!("no row: {query}")
}

pub(crate) async fn execute(url: &str, statement: &str) -> Result<()> {
    Ok(gleaner_postgres::testing::connect(url).await?.batch_execute(statement).await?)
}
