//! A private PostgreSQL for people who have none running: found on the machine, started on a unix socket with its data in
//! a directory of its own, adopted when it outlived its parent, stopped without a trace.
//!
//! ```no_run
//! # async fn example() -> Result<(), gleaner_postgres::Error> {
//! use gleaner_postgres::{Cluster, Home, Options};
//!
//! let cluster = Cluster::start(Options::new(Home::from_env()?)).await?;
//! println!("psql '{}'", cluster.url());
//! cluster.stop().await
//! # }
//! ```
//!
//! # Layout
//!
//! - `find`: which PostgreSQL is on this machine ([`Installation`]); `advice` names the command that installs one.
//! - `home`: where everything is kept ([`Home`]), and who holds it (`lock`).
//! - `cluster`: [`Cluster`]: start, adopt, restart, stop. `survivor` decides between adopting and starting.
//! - `launch`: the server process. It stands on `init` (a new data directory), `settings` (sized by `machine`), `account`
//!   (root may not run PostgreSQL), `socket` (one directory per home), `log`, and `process` (the child and the thread it
//!   dies with).
//! - `program`: whether an upgrade replaced the executable of the running server.
//! - `pid`: which servers live in a data directory; `connect`: whether one answers; `password`: for TCP only.
//! - `status`, `down`, `reset`: the same home seen from another process; `state` is the note they read.
//! - [`testing`]: one throw-away server per test process, a database per test, and servers to crash.
//!
//! # Invariants
//!
//! - One data directory never has two servers. The parent holds a lock on the home, and `postmaster.pid` is removed only
//!   when no PostgreSQL process has its working directory in the data directory.
//! - A data directory is complete or absent: it is initialised beside its place, flushed, and renamed.
//! - A server does not outlive its parent on Linux; where it does, the next start adopts it.
//! - What a person wrote into `postgresql.conf` is neither overwritten nor overruled, except for where the server listens.

mod account;
mod advice;
mod cluster;
mod connect;
mod down;
mod error;
mod find;
mod home;
mod init;
mod launch;
mod lock;
mod log;
mod machine;
mod options;
mod password;
mod pid;
mod process;
mod program;
mod reset;
mod settings;
mod socket;
mod state;
mod status;
mod survivor;
pub mod testing;

pub use cluster::Cluster;
pub use down::{Stopped, down};
pub use error::Error;
pub use find::{Installation, OLDEST, Search, Version};
pub use home::Home;
pub use options::{Options, ParentDeath};
pub use reset::reset;
pub use status::{Phase, Running, Status, status};

/// What most functions here return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The superuser of a private cluster, and the database made for it.
pub const NAME: &str = "gleaner";
