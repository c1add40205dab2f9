//! A server to measure, in this process: the clients' load is taken from the same cores.

use std::path::PathBuf;

use anyhow::Result;
use gleaner_http::Role;
use gleaner_server::{Config, Server, State};

use crate::stage::Stage;

/// The default number of connections of `gleaner serve`.
const POOL: usize = 16;

#[derive(Debug)]
pub(crate) struct Serving {
    server: Server,
    home: PathBuf,
    pub address: String,
    /// The project's service key.
    pub key: String,
}

impl Serving {
    pub(crate) async fn start(stage: &Stage, realtime: bool) -> Result<Self> {
        Self::start_with(stage, POOL, |config| config.realtime = realtime).await
    }

    pub(crate) async fn start_with(stage: &Stage, pool: usize, change: impl FnOnce(&mut Config)) -> Result<Self> {
        let home = std::env::temp_dir().join(format!("gleaner-bench-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&home)?;
        let mut config = Config::new(&home);
        config.listen = "127.0.0.1:0".parse()?;
        // The benchmark is one sender, and it sends at a rate that the limits would refuse.
        config.limits.ceiling_per_minute = 0;
        change(&mut config);
        let server = Server::start(config, &stage.url, gleaner::pool(&stage.url, pool)?).await?;
        let address = server.local_addr().to_string();
        let key = server.state().access.project_key(Role::Service);
        Ok(Self { server, home, address, key })
    }

    pub(crate) fn state(&self) -> &State {
        self.server.state()
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.server.stop().await;
        Ok(std::fs::remove_dir_all(&self.home)?)
    }
}
