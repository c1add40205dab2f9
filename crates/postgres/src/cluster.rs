//! A private PostgreSQL from start to stop.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::time::{sleep, timeout};

use crate::account::Account;
use crate::connect::{self, PORT};
use crate::keeper::{Keeper, Server, wait_blocking};
use crate::lock::Lock;
use crate::pid::{self, LOOK_AGAIN, PidFile};
use crate::state::State;
use crate::{Error, Home, Installation, NAME, Options, Result, Search, init, settings, socket};

/// How long processes that a dead parent left may take to end before a start gives up.
const PATIENCE_WITH_SURVIVORS: Duration = Duration::from_secs(30);

/// A log longer than this is put aside at a start; one older log is kept.
const LONGEST_LOG: u64 = 32 * 1024 * 1024;

/// A running private PostgreSQL, held by this process. [`Cluster::stop`] ends it; dropping it does so too, as well as a
/// destructor can; and when this process dies, the kernel tells the server to shut down (Linux).
#[derive(Debug)]
pub struct Cluster {
    options: Options,
    account: Account,
    server: Server,
    socket_directory: PathBuf,
    port: u16,
    url: String,
    tcp_url: Option<String>,
    version: String,
    /// Nobody else starts on this home while we hold it. Last, so that it is released last.
    _lock: Lock,
}

impl Cluster {
    /// Starts the cluster of a home: makes it if there is none, adopts its server if one survived, recovers if it crashed.
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
        // The socket directory of a server that was killed.
        if let Some(state) = State::read(&options.home) {
            socket::remove(&state.socket_directory);
        }
        let started = {
            let (options, account) = (options.clone(), account.clone());
            blocking(move || {
                let socket_directory = socket::create(&account)?;
                let server = launch(&options, &account, &socket_directory);
                if server.is_err() {
                    socket::remove(&socket_directory);
                }
                Ok((server?, socket_directory))
            })
        };
        let ((server, log_start), socket_directory) = started.await?;
        let port = options.port.unwrap_or(PORT);
        let url = connect::socket_url(&socket_directory, port, NAME);
        // From here on an early return drops the cluster, which stops the server and cleans up.
        let mut cluster = Self {
            options,
            account,
            server,
            socket_directory,
            port,
            url,
            tcp_url: None,
            version: String::new(),
            _lock: lock,
        };
        cluster.become_ready(log_start).await?;
        tracing::info!(pid = cluster.pid(), version = cluster.version, home = %cluster.home().path().display(), "PostgreSQL is ready");
        Ok(cluster)
    }

    async fn adopt(options: Options, account: Account, lock: Lock, survivor: PidFile) -> Result<Self> {
        let PidFile {
            pid,
            port,
            socket_directory,
            ..
        } = survivor;
        if options.port.is_some_and(|asked| asked != port) {
            tracing::warn!(port, "the adopted server keeps its port until it is stopped");
        }
        let server = Server::Adopted {
            pid,
            data: options.home.data(),
            account: account.clone(),
        };
        let url = connect::socket_url(&socket_directory, port, NAME);
        let tcp_url = State::read(&options.home).and_then(|state| state.tcp_url);
        connect::ensure_database(&connect::socket_url(&socket_directory, port, "postgres")).await?;
        let version = connect::server_version(&url).await?;
        let cluster = Self {
            options,
            account,
            server,
            socket_directory,
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

    /// The address over TCP, password included, when a port was asked for.
    pub fn tcp_url(&self) -> Option<&str> {
        self.tcp_url.as_deref()
    }

    /// The address of another database of this cluster.
    pub fn url_of(&self, database: &str) -> String {
        connect::socket_url(&self.socket_directory, self.port, database)
    }

    /// Where it keeps everything.
    pub fn home(&self) -> &Home {
        &self.options.home
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The directory of its unix socket.
    pub fn socket_directory(&self) -> &Path {
        &self.socket_directory
    }

    /// The server's version, for people: `15.4`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the server was there before us.
    pub fn was_adopted(&self) -> bool {
        matches!(self.server, Server::Adopted { .. })
    }

    /// Waits until the server ends without being asked to. A program that needs it runs this beside its own work.
    pub async fn exited(&self) {
        self.server.exited().await;
    }

    /// Stops it: a fast shutdown, an immediate one when that takes longer than `stop_timeout`. The data stays.
    pub async fn stop(self) -> Result<()> {
        self.end().await?;
        self.clean_up();
        Ok(())
    }

    /// Kills the server and all its sessions at once, as a power cut would, and waits until they are gone.
    /// [`Cluster::restart`] brings it back. For tests of what survives.
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
            return Err(Error::ServerLeft {
                data: self.home().data(),
                pids: left,
            });
        }
        pid::remove_stale(&self.home().data())?;
        socket::clear(&self.socket_directory);
        let (options, account, sockets) = (
            self.options.clone(),
            self.account.clone(),
            self.socket_directory.clone(),
        );
        let (server, log_start) = blocking(move || launch(&options, &account, &sockets)).await?;
        self.server = server;
        self.become_ready(log_start).await
    }

    async fn end(&self) -> Result<()> {
        let patience = self.options.stop_timeout;
        // After SIGQUIT nothing is written any more, and SIGKILL is for a process that no longer listens.
        for (signal, patience) in [
            (Signal::SIGINT, patience),
            (Signal::SIGQUIT, Duration::from_secs(10)),
            (Signal::SIGKILL, Duration::from_secs(5)),
        ] {
            self.server.signal(signal)?;
            if timeout(patience, self.server.exited()).await.is_ok() {
                return Ok(());
            }
            tracing::warn!(
                pid = self.pid(),
                ?signal,
                seconds = patience.as_secs(),
                "PostgreSQL has not stopped yet"
            );
        }
        Err(Error::NotStopped {
            pid: self.pid(),
            seconds: patience.as_secs(),
        })
    }

    fn clean_up(&self) {
        socket::remove(&self.socket_directory);
        State::remove(self.home());
    }

    fn note_state(&self) -> Result<()> {
        State {
            parent_pid: std::process::id(),
            pid: self.pid(),
            url: self.url.clone(),
            tcp_url: self.tcp_url.clone(),
            socket_directory: self.socket_directory.clone(),
        }
        .write(self.home())
    }

    /// Waits until the server answers, and makes sure that everything promised is there.
    async fn become_ready(&mut self, log_start: u64) -> Result<()> {
        // Noted already: whoever looks while recovery takes its time learns where the server will be.
        self.note_state()?;
        let began = Instant::now();
        let mut told = began;
        let data = self.home().data();
        // The server says in its pid file when it is ready. Knocking earlier would only fill its log with refusals.
        while !PidFile::read(&data).is_some_and(|file| file.pid == self.pid() && file.phase == "ready") {
            if self.server.has_exited() {
                return Err(self.died(log_start));
            }
            if began.elapsed() > self.options.start_timeout {
                let (log, tail) = (self.home().log(), log_tail(self.home(), log_start));
                return Err(Error::NotReady {
                    seconds: self.options.start_timeout.as_secs(),
                    log,
                    tail,
                });
            }
            if told.elapsed() > Duration::from_secs(5) {
                told = Instant::now();
                tracing::info!(
                    seconds = began.elapsed().as_secs(),
                    "PostgreSQL is recovering; waiting"
                );
            }
            sleep(LOOK_AGAIN / 4).await;
        }
        connect::ensure_database(&self.url_of("postgres")).await?;
        self.version = connect::server_version(&self.url).await?;
        if let Some(port) = self.options.port {
            let password = secret(self.home())?;
            connect::set_password(&self.url, &password).await?;
            self.tcp_url = Some(connect::tcp_url(port, &password, NAME));
            self.note_state()?;
        }
        Ok(())
    }

    fn died(&self, log_start: u64) -> Error {
        let status = self
            .server
            .exit()
            .map_or_else(|| "unknown status".to_owned(), |status| status.to_string());
        Error::Died {
            status,
            log: self.home().log(),
            tail: log_tail(self.home(), log_start),
        }
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
            self.clean_up();
        }
    }
}

/// A server that outlived its parent and is there to stay, once it is certain that it is; none once none is left.
async fn survivor(data: &Path, account: &Account) -> Result<Option<PidFile>> {
    let began = Instant::now();
    loop {
        let left = pid::servers_in(data, account)?;
        if left.is_empty() {
            pid::remove_stale(data)?;
            return Ok(None);
        }
        let file = PidFile::read(data).filter(|file| left.contains(&file.pid));
        if let Some(file) = file
            && file.phase == "ready"
            && stays(&file).await
            && PidFile::read(data).as_ref() == Some(&file)
        {
            return Ok(Some(file));
        }
        if began.elapsed() > PATIENCE_WITH_SURVIVORS {
            return Err(Error::ServerLeft {
                data: data.to_owned(),
                pids: left,
            });
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Whether a server keeps a session for a moment. Its parent may have died this very instant, and the signal that makes
/// it shut down may still be on its way: the kernel releases our lock slightly before it sends that signal.
async fn stays(file: &PidFile) -> bool {
    let url = connect::socket_url(&file.socket_directory, file.port, "postgres");
    let Ok(Ok(client)) = timeout(Duration::from_secs(5), connect::connect(&url)).await else {
        return false;
    };
    sleep(Duration::from_millis(200)).await;
    client.batch_execute("select 1").await.is_ok()
}

/// Starts the server process. Gives it and the length its log had before.
fn launch(options: &Options, account: &Account, socket_directory: &Path) -> Result<(Server, u64)> {
    let home = &options.home;
    let data = home.data();
    let installation = match &options.installation {
        Some(installation) => installation.clone(),
        None => Search::from_env().for_data(&data)?,
    };
    let remedy =
        || "Install PostgreSQL where every account can reach it, or start as an ordinary user".to_owned();
    account.must_reach(installation.bin(), remedy)?;
    if init::initialise(home, account, &installation, options.durable)? {
        tracing::info!(data = %data.display(), version = %installation.version(), "made a new cluster");
    }
    check_version(&data, &installation)?;
    settings::write_generated(&data, account, &installation, options)?;

    let (log, log_start) = open_log(home)?;
    let mut command = account.command(installation.program("postgres"), &data);
    // Where it listens is given here and not in a file: the addresses we hand out must be true.
    command
        .arg("-D")
        .arg(&data)
        .arg("-k")
        .arg(socket_directory)
        .arg("-p")
        .arg(options.port.unwrap_or(PORT).to_string())
        .arg("-c")
        .arg(format!(
            "listen_addresses={}",
            if options.port.is_some() { "127.0.0.1" } else { "" }
        ));
    for (name, value) in &options.settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    let errors = log.try_clone().map_err(Error::io("open", home.log()))?;
    command.stdout(Stdio::from(log)).stderr(Stdio::from(errors));
    let keeper = Keeper::spawn(command, options.parent_death)
        .map_err(Error::io("run", installation.program("postgres")))?;
    Ok((Server::Child(keeper), log_start))
}

fn check_version(data: &Path, installation: &Installation) -> Result<()> {
    match crate::find::data_version(data)? {
        Some(wanted) if wanted != installation.version().major => Err(Error::OtherVersion {
            data: data.to_owned(),
            wanted,
            found: vec![installation.clone()],
        }),
        _ => Ok(()),
    }
}

fn open_log(home: &Home) -> Result<(File, u64)> {
    let path = home.log();
    let length = fs::metadata(&path).map_or(0, |metadata| metadata.len());
    if length > LONGEST_LOG {
        fs::rename(&path, path.with_extension("log.1")).map_err(Error::io("rename", &path))?;
    }
    let mut log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o640)
        .open(&path)
        .map_err(Error::io("open", &path))?;
    home.give_to_owner(&path)?;
    let length = log.seek(SeekFrom::End(0)).map_err(Error::io("read", &path))?;
    Ok((log, length))
}

/// The last lines that this start wrote.
fn log_tail(home: &Home, start: u64) -> String {
    let mut text = Vec::new();
    let read = File::open(home.log()).and_then(|mut log| {
        log.seek(SeekFrom::Start(start))?;
        log.read_to_end(&mut text)
    });
    if let Err(error) = read {
        return format!("(unreadable: {error})");
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// The password for TCP: made once, kept where only we read it.
fn secret(home: &Home) -> Result<String> {
    let path = home.password();
    if let Ok(text) = fs::read_to_string(&path) {
        let text = text.trim();
        if text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(text.to_owned());
        }
    }
    let mut bytes = [0; 24];
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(Error::io("read", "/dev/urandom"))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let _ = fs::remove_file(&path);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| writeln!(file, "{text}"))
        .map_err(Error::io("write", &path))?;
    home.give_to_owner(&path)?;
    Ok(text)
}

/// Runs work that blocks on the threads made for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failure) => std::panic::resume_unwind(failure.into_panic()),
    }
}
