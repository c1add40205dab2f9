//! What every handler shares.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::FromRef;
use gleaner::Pool;
use gleaner_ingest::Channel;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::Config;
use crate::access::Access;
use crate::channels::Channels;
use crate::door::body::Memory;
use crate::door::committer::Committer;
use crate::door::contacts::Newcomers;
use crate::door::limits::Limits;
use crate::door::refusals::Refusals;
use crate::files::Files;
use crate::gmail::Gmail;
use crate::media::Media;

#[derive(Debug)]
pub struct State {
    pub config: Config,
    /// Where we really listen.
    pub address: SocketAddr,
    pub pool: Pool,
    pub channels: Channels,
    pub files: Files,
    pub committer: Committer,
    pub newcomers: Newcomers,
    pub refusals: Refusals,
    pub limits: Limits,
    pub memory: Memory,
    /// Channels at whose provider something waits.
    pub fetches: mpsc::Sender<Uuid>,
    pub access: Access,
    pub gmail: Arc<Gmail>,
    pub media: Arc<Media>,
}

/// The state as routers hand it on, each handler taking its part.
#[derive(Debug, Clone)]
pub struct Shared(pub Arc<State>);

impl FromRef<Shared> for Arc<State> {
    fn from_ref(shared: &Shared) -> Self {
        Self::clone(&shared.0)
    }
}

impl FromRef<Shared> for Access {
    fn from_ref(shared: &Shared) -> Self {
        shared.0.access.clone()
    }
}

impl FromRef<Shared> for Arc<Gmail> {
    fn from_ref(shared: &Shared) -> Self {
        Self::clone(&shared.0.gmail)
    }
}

impl FromRef<Shared> for Arc<Media> {
    fn from_ref(shared: &Shared) -> Self {
        Self::clone(&shared.0.media)
    }
}

impl State {
    /// What the sender was given as our address: the channel's own, else the server's, else where we listen.
    pub fn public_base(&self, channel: &Channel) -> String {
        let base = channel.settings.text("public_url").or(self.config.public_base.as_deref());
        base.map_or_else(|| format!("http://{}", self.address), |base| base.trim_end_matches('/').to_owned())
    }
}
