//! Opens the endpoint, however long that takes.

use std::sync::Arc;
use std::time::Duration;

use gleaner::Error;
use gleaner::transport::{Direct, Endpoint};
use tokio::sync::watch;

use super::Result;
use super::fetch::{Both, Through};
use super::home::Link;
use super::meter::Trouble;
use super::shared::Shared;
use crate::config::{Config, EndpointAt};
use crate::pipeline::{Fetch, fetch};
use crate::wire::Wire;

const FIRST_WAIT: Duration = Duration::from_millis(250);
/// How often to check where an endpoint that cannot be reached may have moved.
const FOLLOW: Duration = Duration::from_secs(1);

/// An endpoint that is configured and not yet reached.
#[derive(Debug)]
pub(super) struct Opening {
    at: At,
    connections: usize,
    owner: Option<String>,
    server: Option<Wire>,
    recordings: Vec<String>,
}

/// An endpoint that has answered.
#[derive(Debug)]
pub(super) struct Opened {
    pub endpoint: Arc<dyn Endpoint>,
    /// The queues it has.
    pub queues: Vec<String>,
    pub fetch: Arc<dyn Fetch>,
}

#[derive(Debug)]
enum At {
    Direct(Direct),
    Wire(Wire),
    /// The private PostgreSQL of this home, whose URL is known once it runs.
    Home(Link),
}

impl Opening {
    /// Refuses at once what waiting does not fix, such as an invalid URL.
    pub(super) fn new(config: &Config, queues: usize) -> Result<Self> {
        // Acts are short: a few connections serve many items. One more per queue for polling.
        let connections = config.concurrency.min(16) + queues + 1;
        let at = match &config.endpoint {
            EndpointAt::Direct(url) => At::Direct(Direct::new(url, connections)?),
            EndpointAt::Home(home) => At::Home(Link::new(home)),
            EndpointAt::Wire(settings) => At::Wire(Wire::connect(settings.clone())?),
        };
        let server = config.server.clone().map(Wire::connect).transpose()?;
        Ok(Self { at, connections, owner: config.owner.clone(), server, recordings: config.recordings.clone() })
    }

    /// None when stopped meanwhile. Transient errors are logged, shown on the status page and retried.
    pub(super) async fn open(&self, shared: &Shared, stop: &mut watch::Receiver<bool>) -> Result<Option<Opened>> {
        let mut wait = FIRST_WAIT;
        loop {
            let error = match self.try_open(shared).await {
                Ok(opened) => {
                    shared.change(|now| (now.errors_in_a_row, now.trouble) = (0, None));
                    return Ok(Some(opened));
                }
                Err(error) if error.is_transient() => error,
                Err(error) => return Err(error.into()),
            };
            tracing::warn!(%error, wait_ms = wait.as_millis(), "the endpoint is away; trying again");
            shared.change(|now| {
                now.errors_in_a_row = now.errors_in_a_row.saturating_add(1);
                now.trouble = Some(Trouble::new(&error).after(now.trouble.as_ref()));
            });
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(shared.config.poll.max),
                _ = stop.wait_for(|stop| *stop) => return Ok(None),
            }
        }
    }

    async fn try_open(&self, shared: &Shared) -> gleaner::Result<Opened> {
        let (endpoint, fetch): (Arc<dyn Endpoint>, Arc<dyn Fetch>) = match &self.at {
            At::Direct(direct) => (Arc::new(direct.clone()), self.fetch(direct)?),
            At::Home(link) => {
                let direct = Direct::new(&link.lead().await?, self.connections)?;
                let fetch = self.fetch(&direct)?;
                (Arc::new(direct), fetch)
            }
            At::Wire(wire) => (Arc::new(wire.clone()), Arc::new(Through(wire.clone()))),
        };
        shared.change(|now| {
            now.endpoint = Some(match &self.at {
                At::Home(link) => link.describe(),
                _ => endpoint.describe(),
            });
        });
        let queues = match endpoint.queues().await {
            // Not migrated yet: our own table or schema does not exist.
            Err(error) if error.code().is_some_and(|code| matches!(code.code(), "42P01" | "3F000")) => Vec::new(),
            queues => queues?,
        };
        if let (At::Wire(wire), None) = (&self.at, &self.owner) {
            let who = wire.who().await?;
            shared.change(|now| now.owner = who.map(|owner| owner.sales_id));
        }
        Ok(Opened { endpoint, queues, fetch })
    }

    /// Follows an endpoint that moves, until the future is dropped.
    pub(super) async fn follow(&self, shared: &Shared) {
        let At::Home(link) = &self.at else { return std::future::pending().await };
        loop {
            tokio::time::sleep(FOLLOW).await;
            if shared.meters().iter().any(|meter| meter.read().errors_in_a_row > 0)
                && let Err(error) = link.lead().await
            {
                tracing::debug!(%error, "the endpoint is still away");
            }
        }
    }

    fn fetch(&self, direct: &Direct) -> gleaner::Result<Arc<dyn Fetch>> {
        let rows =
            fetch::Direct::new(Some(direct.pool().clone()), self.recordings.clone()).map_err(|error| Error::Other(error.to_string()))?;
        Ok(match &self.server {
            Some(server) => Arc::new(Both { rows, files: Through(server.clone()) }),
            None => Arc::new(rows),
        })
    }
}
