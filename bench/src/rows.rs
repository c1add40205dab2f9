//! What can be measured, by the names `--only` knows.

use anyhow::Result;
use clap::ValueEnum;

use crate::report::Report;
use crate::server::{Server, Servers};
use crate::stage::Stage;
use crate::{agent, attached, backlog, claim, drain, enqueue, idle, ingest, pickup, pinned, runtime, wire};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Row {
    /// Work put in: COPY, acts, single inserts.
    Enqueue,
    /// Claims and completions of 500 by SQL, next to raw loops and pgmq.
    Drain,
    /// Claims of one row, next to the raw statement on a copy of the table.
    Claim,
    /// A plain attached table through `Worker`, next to claim-and-keep on a copy of it.
    Attached,
    /// From commit to handler, one job at a time.
    Pickup,
    /// Drains with millions of other rows there.
    Backlog,
    /// A minute of work under an open transaction.
    Pinned,
    /// Statements of an idle worker.
    Idle,
    /// Webhooks to durable rows.
    Ingest,
    /// REST, RPC and realtime of the server.
    Wire,
    /// The agent's runtime, on the database and over HTTP.
    Agent,
    /// All of the runtime-… rows.
    Runtime,
    /// `Worker` with a no-op handler: one process, prefetch, four processes, next to pgmq.
    RuntimeDrain,
    /// `Worker` with 2 M other jobs waiting, next to pgmq.
    RuntimeBacklog,
    /// `Worker` and `Queue` under an open transaction, next to pgmq.
    RuntimePinned,
    /// From `Queue::enqueue` to the handler at a job every 20 ms, next to pgmq.
    RuntimePickup,
    /// `Queue::enqueue` from 16 clients and in bulk, next to pgmq.
    RuntimeEnqueue,
}

/// In the order they run in.
const ALL: [Row; 16] = [
    Row::Enqueue,
    Row::Drain,
    Row::Claim,
    Row::Pickup,
    Row::Backlog,
    Row::Pinned,
    Row::Idle,
    Row::Attached,
    Row::RuntimeDrain,
    Row::RuntimeBacklog,
    Row::RuntimePinned,
    Row::RuntimePickup,
    Row::RuntimeEnqueue,
    Row::Ingest,
    Row::Wire,
    Row::Agent,
];

impl Row {
    /// Whether users meet it through `Worker` and `Queue`: then PostgreSQL's own settings count as much as ours.
    fn is_runtime(self) -> bool {
        use Row::{Attached, RuntimeBacklog, RuntimeDrain, RuntimeEnqueue, RuntimePickup, RuntimePinned};
        matches!(self, Attached | RuntimeDrain | RuntimeBacklog | RuntimePinned | RuntimePickup | RuntimeEnqueue)
    }

    fn is_wanted(self, only: &[Self]) -> bool {
        only.is_empty() || only.contains(&self) || self.is_runtime() && self != Self::Attached && only.contains(&Self::Runtime)
    }

    pub(crate) async fn measure(self, stage: &Stage, report: &mut Report) -> Result<()> {
        match self {
            Self::Enqueue => enqueue::measure(stage, report).await,
            Self::Drain => drain::measure(stage, report).await,
            Self::Claim => claim::measure(stage, report).await,
            Self::Attached => attached::measure(stage, report).await,
            Self::Pickup => pickup::measure(stage, report).await,
            Self::Backlog => backlog::measure(stage, report).await,
            Self::Pinned => pinned::measure(stage, report).await,
            Self::Idle => idle::measure(stage, report).await,
            Self::Ingest => ingest::measure(stage, report).await,
            Self::Wire => wire::measure(stage, report).await,
            Self::Agent => agent::measure(stage, report).await,
            // A name for the five below, never run itself.
            Self::Runtime => Ok(()),
            Self::RuntimeDrain => runtime::drain::measure(stage, report).await,
            Self::RuntimeBacklog => runtime::backlog::measure(stage, report).await,
            Self::RuntimePinned => runtime::pinned::measure(stage, report).await,
            Self::RuntimePickup => runtime::pickup::measure(stage, report).await,
            Self::RuntimeEnqueue => runtime::enqueue::measure(stage, report).await,
        }
    }
}

/// The rows that are wanted on `server`. Without a choice the runtime's are measured on both, all others on ours.
pub(crate) fn wanted_on(server: Server, servers: Option<Servers>, only: &[Row]) -> Vec<Row> {
    let on = |row: &Row| servers.unwrap_or(if row.is_runtime() { Servers::Both } else { Servers::Ours }).include(server);
    ALL.into_iter().filter(|row| row.is_wanted(only)).filter(on).collect()
}

/// Those wanted on a server of the user's.
pub(crate) fn wanted(only: &[Row]) -> Vec<Row> {
    ALL.into_iter().filter(|row| row.is_wanted(only)).collect()
}
