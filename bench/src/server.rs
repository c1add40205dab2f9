//! The measured servers: one with our settings, one with PostgreSQL's defaults.

use anyhow::Result;
use clap::ValueEnum;
use gleaner_postgres::testing::PrivateServer;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Server {
    /// With the settings of `gleaner up`.
    Ours,
    /// With PostgreSQL's own defaults: jit = on, 128 MB of shared buffers.
    Stock,
}

/// What `--server` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Servers {
    Ours,
    Stock,
    Both,
}

impl Servers {
    pub(crate) fn include(self, server: Server) -> bool {
        match self {
            Self::Both => true,
            Self::Ours => server == Server::Ours,
            Self::Stock => server == Server::Stock,
        }
    }
}

/// Generated settings that do not affect speed. The benchmark needs the search path: its user has the same name as the engine's
/// schema.
const KEPT: [&str; 7] =
    ["cluster_name", "timezone", "log_timezone", "lc_messages", "unix_socket_permissions", "password_encryption", "search_path"];

impl Server {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Stock => "stock",
        }
    }

    /// Durable: fsync and synchronous_commit are on.
    pub(crate) async fn start(self) -> Result<PrivateServer> {
        let mut server = PrivateServer::start(true).await?;
        if self == Self::Stock {
            reset(&server).await?;
            server.restart().await?;
        }
        Ok(server)
    }
}

/// Resets every setting that our configuration changes to PostgreSQL's default.
async fn reset(server: &PrivateServer) -> Result<()> {
    let client = server.connect().await?;
    let changed = client
        .query(
            // A new cluster's shared buffers are set by initdb, and are not the program's own default.
            "select format('alter system set %I = %L', name, case name when 'shared_buffers' then '128MB' else boot_val end)
             from pg_settings where sourcefile like '%/gleaner.conf' and not lower(name) = any ($1)",
            &[&&KEPT[..]],
        )
        .await?;
    for row in changed {
        client.batch_execute(row.get(0)).await?;
    }
    Ok(())
}
