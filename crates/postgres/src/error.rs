//! All errors, each with what to do about it.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crate::find::Installation;

/// Failures of finding, starting and stopping a private PostgreSQL. The text is written for the user at the command line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no PostgreSQL on this machine. `command` installs it.
    #[error(
        "PostgreSQL 15 or newer is not installed. {command}\n\
         Or point GLEANER_PG_BIN at the directory of its programs, or DATABASE_URL at a running server"
    )]
    Missing { command: String },

    /// PostgreSQL is installed, but older than 15.
    #[error("PostgreSQL 15 or newer is needed; found only {}. {command}", listed(.found))]
    TooOld { found: Vec<Installation>, command: String },

    /// GLEANER_PG_BIN, or a directory given by the program, does not contain a usable PostgreSQL.
    #[error("{} is not a directory of PostgreSQL 15 or newer: {reason}. Correct GLEANER_PG_BIN, or unset it", .bin.display())]
    NotPostgres { bin: PathBuf, reason: String },

    /// The data was written by a major version that is not installed.
    #[error(
        "the data in {} was written by PostgreSQL {wanted}, and only {} is here. Install PostgreSQL {wanted} beside it or \
         point GLEANER_PG_BIN at it; to move to a newer version, run pg_dump with the old one and restore into a new GLEANER_HOME",
        .data.display(), listed(.found)
    )]
    OtherVersion { data: PathBuf, wanted: u32, found: Vec<Installation> },

    /// Neither GLEANER_HOME nor HOME says where to keep data.
    #[error("nowhere to keep data: HOME is not set. Set GLEANER_HOME to a directory")]
    NoHome,

    /// Another process runs a cluster on this home.
    #[error("already running, pid {} (home {}). `gleaner status` shows where; `gleaner down` stops it", known(.pid), .home.display())]
    AlreadyRunning { home: PathBuf, pid: Option<u32> },

    /// A server runs in the data directory, without a parent, and does not answer.
    #[error("PostgreSQL (pid {}) still works in {} and does not answer. Wait for it, or end it with `gleaner down`", joined(.pids), .data.display())]
    ServerLeft { data: PathBuf, pids: Vec<u32> },

    /// Running as root, and there is no account to run PostgreSQL as.
    #[error(
        "PostgreSQL refuses to run as root, and neither account `postgres` nor `nobody` exists. Create one (`useradd --system postgres`) or start as an ordinary user"
    )]
    NoAccount,

    /// Running as root, and the account PostgreSQL runs as cannot enter a directory it needs.
    #[error(
        "PostgreSQL refuses to run as root, so it runs as account `{account}`, and that account may not enter {}, which is on the way to {}. {remedy}",
        .barrier.display(), .wanted.display()
    )]
    OutOfReach { account: String, barrier: PathBuf, wanted: PathBuf, remedy: String },

    /// The data directory contains other files.
    #[error("{} holds files but is not a PostgreSQL data directory. Move them away, or set GLEANER_HOME to another place", .data.display())]
    NotADataDirectory { data: PathBuf },

    /// No directory for the socket has a short enough path for a unix socket.
    #[error("the socket directory {} is too long for a unix socket (107 bytes with its file). Use a shorter one, such as /tmp", .path.display())]
    SocketPathTooLong { path: PathBuf },

    /// initdb failed.
    #[error("initdb failed ({status}) in {}:\n{output}", .data.display())]
    Initdb { data: PathBuf, status: ExitStatus, output: String },

    /// The server ended instead of becoming ready. The last lines of its log usually say why.
    #[error("PostgreSQL ended while starting ({status}). Its log, {}, ends:\n{tail}", .log.display())]
    Died { status: String, log: PathBuf, tail: String },

    /// The server did not become ready in time and was stopped again.
    #[error("PostgreSQL was not ready after {seconds} s. Its log, {}, ends:\n{tail}", .log.display())]
    NotReady { seconds: u64, log: PathBuf, tail: String },

    /// The server, or the process that runs it, did not end in time.
    #[error(
        "process {pid} did not stop within {seconds} s. Look at it with `ps -fp {pid}`; `kill -QUIT {pid}` ends PostgreSQL at once, its data stays safe"
    )]
    NotStopped { pid: u32, seconds: u64 },

    /// The server answered a connection or statement with an error.
    #[error("{act}: {}", .source.as_db_error().map_or_else(|| source.to_string(), |error| error.message().to_owned()))]
    Database { act: &'static str, source: tokio_postgres::Error },

    /// The operating system returned an error.
    #[error("{act} {}: {source}{}", .path.display(), hint(.source))]
    Io { act: &'static str, path: PathBuf, source: io::Error },

    /// The function with which a test prepares its template failed.
    #[error("prepare template {template}: {source}")]
    Prepare { template: String, source: Box<dyn std::error::Error + Send + Sync> },
}

impl Error {
    /// For `map_err`: what was being done, and to which file.
    pub(crate) fn io(act: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { act, path, source }
    }

    /// For `map_err`: which statement or connection it was.
    pub(crate) fn database(act: &'static str) -> impl FnOnce(tokio_postgres::Error) -> Self {
        move |source| Self::Database { act, source }
    }
}

fn listed(found: &[Installation]) -> String {
    let mut text = String::new();
    for (index, one) in found.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{} ({})", one.version(), one.bin().display());
    }
    if text.is_empty() { "none".to_owned() } else { text }
}

fn joined(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn known(pid: &Option<u32>) -> String {
    pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string())
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => ". Run as the user who started it, or set GLEANER_HOME to a directory of your own",
        io::ErrorKind::StorageFull => ". The disk is full",
        _ => "",
    }
}
