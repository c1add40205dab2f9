//! A private PostgreSQL from start to stop.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::time::{sleep, timeout};

use crate::account::Account;
use crate::connect::{self, PORT};
use crate::launch::{Launched, launch};
use crate::lock::Lock;
use crate::password::password;
use crate::pid::{self, LOOK_AGAIN, PidFile};
use crate::process::{Server, wait_blocking};
use crate::program::Program;
use crate::socket::SocketDirectory;
use crate::state::State;
use crate::survivor::survivor;
use crate::{Error, Home, NAME, Options, Result, log, socket};

/// How often the executable on disk is compared with the one that was started.
const LOOK_FOR_UPGRADE: Duration = Duration::from_secs(1);

/// A running private PostgreSQL, owned by this process. [`Cluster::stop`] ends it. Dropping it does so too, as well as a destructor
/// can. When this process dies, the kernel signals the server to shut down (Linux).
#[derive(Debug)]
pub struct Cluster {
    options: Options,
    account: Account,
    server: Server,
    /// Its executable as it was at the start.
    program: Option<Program>,
    socket_directory: SocketDirectory,
    port: u16,
    url: String,
    tcp_url: Option<String>,
    version: String,
    /// While it is held, no other process starts a cluster on this home. It is the last field, so that it is released last.
    _lock: Lock,
}

impl Cluster {
    /// Starts the cluster of a home: creates it if there is none, adopts its server if one survived, recovers if it crashed.
    /// Returns once the server answers.
    pub async fn start(options: Options) -> Result<Self> {
        let home = options.home.clone();
        let (account, lock) = blocking(move || {
            let account = Account::for_data(&home.data())?;
            home.create(&account)?;
            Ok((account, Lock::take(&home)?))
        })
        .await?;
        if let Some(survivor) = survivor(&options.home.data(), &account).await? {
            return Self::adopt(options, account, lock, survivor).await;
        }
        // Removes the socket directory of a server that was killed.
        if let Some(state) = State::read(&options.home) {
            socket::remove(&state.socket_directory);
        }
        let started = {
            let (options, account) = (options.clone(), account.clone());
            // The lock moves into the closure: this work runs to its end even when the caller has stopped waiting for it.
            blocking(move || {
                let socket_directory = SocketDirectory::create(&account, &options.home, options.socket_parent.as_deref())?;
                let launched = launch(&options, &account, socket_directory.path())?;
                Ok((launched, socket_directory, lock))
            })
        };
        let (Launched { server, program, log_start }, socket_directory, lock) = started.await?;
        let port = options.port.unwrap_or(PORT);
        let url = connect::socket_url(socket_directory.path(), port, NAME);
        // From here on an early return drops the cluster, which stops the server and cleans up.
        let mut cluster =
            Self { options, account, server, program, socket_directory, port, url, tcp_url: None, version: String::new(), _lock: lock };
        cluster.become_ready(log_start).await?;
        tracing::info!(pid = cluster.pid(), version = cluster.version, home = %cluster.home().path().display(), "PostgreSQL is ready");
        Ok(cluster)
    }

    async fn adopt(options: Options, account: Account, lock: Lock, survivor: PidFile) -> Result<Self> {
        let PidFile { pid, port, socket_directory, .. } = survivor;
        if options.port.is_some_and(|asked| asked != port) {
            tracing::warn!(port, "the adopted server keeps its port until it is stopped");
        }
        let server = Server::Adopted { pid, data: options.home.data(), account: account.clone() };
        let url = connect::socket_url(&socket_directory, port, NAME);
        let (tcp_url, program) = State::read(&options.home).map(|state| (state.tcp_url, state.program)).unwrap_or_default();
        connect::ensure_database(&connect::socket_url(&socket_directory, port, "postgres")).await?;
        let version = connect::server_version(&url).await?;
        let cluster = Self {
            options,
            account,
            server,
            program,
            socket_directory: SocketDirectory::of(socket_directory),
            port,
            url,
            tcp_url,
            version,
            _lock: lock,
        };
        cluster.note_state()?;
        tracing::info!(pid, home = %cluster.home().path().display(), "adopted a PostgreSQL that outlived its parent");
        Ok(cluster)
    }

    /// The address of database `gleaner`, for psql and for tokio-postgres: `postgresql://gleaner@/gleaner?host=…`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address over TCP, password included, when a port was requested.
    pub fn tcp_url(&self) -> Option<&str> {
        self.tcp_url.as_deref()
    }

    /// The address of another database of this cluster.
    pub fn url_of(&self, database: &str) -> String {
        connect::socket_url(self.socket_directory.path(), self.port, database)
    }

    /// The directory that holds all its files.
    pub fn home(&self) -> &Home {
        &self.options.home
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The directory of its unix socket.
    pub fn socket_directory(&self) -> &Path {
        self.socket_directory.path()
    }

    /// The server's version, for display: `15.4`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the server was running before this process started.
    pub fn was_adopted(&self) -> bool {
        matches!(self.server, Server::Adopted { .. })
    }

    /// Waits until the server ends without being asked to. A program that needs the server awaits this next to its own work.
    pub async fn exited(&self) {
        self.server.exited().await;
    }

    /// Waits until an upgrade has replaced the server's executable on disk by one that can open the data, and has left it alone for
    /// two checks. [`Cluster::restart`] then starts the new one. Never returns where the executable is not known.
    pub async fn upgraded(&self) {
        let mut seen = None;
        loop {
            sleep(LOOK_FOR_UPGRADE).await;
            let found = self.program.as_ref().and_then(Program::replaced_by);
            if let (Some(program), true) = (&found, found == seen) {
                let (program, data) = (program.clone(), self.home().data());
                // Runs `postgres --version`.
                let opens = move || Ok(crate::find::data_version(&data)?.is_some_and(|major| program.opens(major)));
                if blocking(opens).await.unwrap_or(false) {
                    return;
                }
            }
            seen = found;
        }
    }

    /// Stops it with a fast shutdown, and with an immediate one when that takes longer than `stop_timeout`. The data is kept.
    pub async fn stop(self) -> Result<()> {
        // Dropping the rest cleans up.
        self.end().await
    }

    /// Kills the server and all its sessions at once, as a power failure would, and waits until they are gone. [`Cluster::restart`]
    /// starts it again. For tests of what survives a crash.
    pub async fn crash(&mut self) -> Result<()> {
        // The server first, or it would take the end of a session for a crash and start recovery by itself.
        self.server.signal(Signal::SIGKILL)?;
        loop {
            let left = pid::servers_in(&self.home().data(), &self.account)?;
            if left.is_empty() && self.server.has_exited() {
                return Ok(());
            }
            for pid in left {
                pid::signal(pid, Signal::SIGKILL)?;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Stops the server if it still runs, and starts it again at the same address.
    pub async fn restart(&mut self) -> Result<()> {
        self.end().await?;
        let left = pid::servers_in(&self.home().data(), &self.account)?;
        if !left.is_empty() {
            return Err(Error::ServerLeft { data: self.home().data(), pids: left });
        }
        pid::remove_stale(&self.home().data())?;
        socket::clear(self.socket_directory());
        let (options, account, sockets) = (self.options.clone(), self.account.clone(), self.socket_directory().to_owned());
        let launched = blocking(move || launch(&options, &account, &sockets)).await?;
        (self.server, self.program) = (launched.server, launched.program);
        self.become_ready(launched.log_start).await
    }

    async fn end(&self) -> Result<()> {
        let patience = self.options.stop_timeout;
        // After SIGQUIT nothing is written any more. SIGKILL is for a process that does not react to signals.
        for (signal, patience) in
            [(Signal::SIGINT, patience), (Signal::SIGQUIT, Duration::from_secs(10)), (Signal::SIGKILL, Duration::from_secs(5))]
        {
            self.server.signal(signal)?;
            if timeout(patience, self.server.exited()).await.is_ok() {
                return Ok(());
            }
            tracing::warn!(pid = self.pid(), ?signal, seconds = patience.as_secs(), "PostgreSQL has not stopped yet");
        }
        Err(Error::NotStopped { pid: self.pid(), seconds: patience.as_secs() })
    }

    fn note_state(&self) -> Result<()> {
        State {
            parent_pid: std::process::id(),
            pid: self.pid(),
            url: self.url.clone(),
            tcp_url: self.tcp_url.clone(),
            socket_directory: self.socket_directory().to_owned(),
            program: self.program.clone(),
        }
        .write(self.home())
    }

    /// Waits until the server answers, and makes sure that the database, the password and the state file exist.
    async fn become_ready(&mut self, log_start: u64) -> Result<()> {
        // Written early: a process that reads the state during a long recovery learns where the server will be.
        self.note_state()?;
        let began = Instant::now();
        let mut reported = began;
        let data = self.home().data();
        // The server writes to its pid file when it is ready. Connecting earlier would only fill its log with refusals.
        while !PidFile::read(&data).is_some_and(|file| file.pid == self.pid() && file.phase == "ready") {
            if self.server.has_exited() {
                return Err(self.died(log_start));
            }
            if began.elapsed() > self.options.start_timeout {
                let (log, tail) = (self.home().log(), log::tail(self.home(), log_start));
                return Err(Error::NotReady { seconds: self.options.start_timeout.as_secs(), log, tail });
            }
            if reported.elapsed() > Duration::from_secs(5) {
                reported = Instant::now();
                tracing::info!(seconds = began.elapsed().as_secs(), "PostgreSQL is recovering; waiting");
            }
            sleep(LOOK_AGAIN / 4).await;
        }
        connect::ensure_database(&self.url_of("postgres")).await?;
        self.version = connect::server_version(&self.url).await?;
        if let Some(port) = self.options.port {
            let secret = password(self.home())?;
            connect::set_password(&self.url, &secret).await?;
            self.tcp_url = Some(connect::tcp_url(port, &secret, NAME));
            self.note_state()?;
        }
        Ok(())
    }

    fn died(&self, log_start: u64) -> Error {
        let status = self.server.exit().map_or_else(|| "unknown status".to_owned(), |status| status.to_string());
        Error::Died { status, log: self.home().log(), tail: log::tail(self.home(), log_start) }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !self.server.has_exited() {
            let _ = self.server.signal(Signal::SIGINT);
            if !wait_blocking(&self.server, Duration::from_secs(10)) {
                let _ = self.server.signal(Signal::SIGQUIT);
                wait_blocking(&self.server, Duration::from_secs(5));
            }
        }
        if self.server.has_exited() {
            State::remove(self.home());
        } else {
            self.socket_directory.keep();
        }
    }
}

/// Runs blocking work on the threads for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failure) => std::panic::resume_unwind(failure.into_panic()),
    }
}
