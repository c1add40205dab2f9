//! What runs on a home, as seen from any process that may read it.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use crate::account::Account;
use crate::pid::PidFile;
use crate::state::State;
use crate::{Home, NAME, Result, connect, lock, pid};

/// The phase of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Starting, perhaps recovering.
    Starting,
    /// It answered just now.
    Ready,
    /// Shutting down.
    Stopping,
    /// Its pid file says that it is ready, but it does not answer.
    Silent,
}

/// A running server: the process exists, is a PostgreSQL, and works in this data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Running {
    /// The server's process id.
    pub pid: u32,
    /// Its phase.
    pub phase: Phase,
    /// The address of database `gleaner` on the unix socket.
    pub url: String,
    /// The address over TCP, password included, when a port was requested.
    pub tcp_url: Option<String>,
    /// The directory of the unix socket.
    pub socket_directory: PathBuf,
    /// Its version, when it answered: `15.4`.
    pub version: Option<String>,
}

/// What is known about a home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The home.
    pub home: PathBuf,
    /// Its data directory, whether or not it exists yet.
    pub data_directory: PathBuf,
    /// The server's log.
    pub log: PathBuf,
    /// Whether there is data.
    pub initialised: bool,
    /// The process that runs the cluster (`gleaner up`), if one does.
    pub parent_pid: Option<u32>,
    /// The server, if one runs.
    pub server: Option<Running>,
}

impl Status {
    /// Whether a server runs and answers.
    pub fn is_ready(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.phase == Phase::Ready)
    }
}

/// Examines a home. Files alone are not trusted: the lock, the processes and the socket are checked.
pub async fn status(home: &Home) -> Result<Status> {
    let data = home.data();
    Ok(Status {
        home: home.path().to_owned(),
        log: home.log(),
        initialised: crate::find::data_version(&data)?.is_some(),
        parent_pid: lock::holder(home)?,
        server: server_of(home).await?,
        data_directory: data,
    })
}

async fn server_of(home: &Home) -> Result<Option<Running>> {
    let data = home.data();
    let servers = pid::servers_in(&data, &Account::for_data(&data)?)?;
    let Some(file) = PidFile::read(&data).filter(|file| servers.contains(&file.pid)) else {
        return Ok(None);
    };
    let PidFile { pid, port, socket_directory, phase } = file;
    let url = connect::socket_url(&socket_directory, port, NAME);
    let answer = match phase.as_str() {
        "ready" => timeout(Duration::from_secs(5), connect::server_version(&url)).await.ok().and_then(Result::ok),
        _ => None,
    };
    let phase = match (phase.as_str(), &answer) {
        ("ready", Some(_)) => Phase::Ready,
        ("ready", None) => Phase::Silent,
        ("stopping", _) => Phase::Stopping,
        _ => Phase::Starting,
    };
    let tcp_url = State::read(home).filter(|state| state.pid == pid).and_then(|state| state.tcp_url);
    Ok(Some(Running { pid, phase, url, tcp_url, socket_directory, version: answer }))
}
