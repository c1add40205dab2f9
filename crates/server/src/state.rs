//! What every handler shares.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

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
use crate::queues::Queues;
use crate::realtime::Realtime;
use crate::rest::Rest;

#[derive(Debug)]
pub struct State {
    pub config: Config,
    /// Where we really listen.
    pub address: SocketAddr,
    pub pool: Pool,
    pub channels: Channels,
    pub files: Files,
    pub access: Access,
    pub gmail: Arc<Gmail>,
    pub media: Arc<Media>,
    pub queues: Queues,
    pub rest: Rest,
    /// None where the configuration says so.
    pub realtime: Option<Realtime>,
    pub committer: Committer,
    pub newcomers: Newcomers,
    pub refusals: Refusals,
    pub limits: Limits,
    pub memory: Memory,
    /// Channels at whose provider something waits.
    pub fetches: mpsc::Sender<Uuid>,
    pub(crate) to_fetch: Mutex<Option<mpsc::Receiver<Uuid>>>,
}

impl State {
    /// What the sender was given as our address: the channel's own, else the server's, else where we listen.
    pub fn public_base(&self, channel: &Channel) -> String {
        let base = channel.settings.text("public_url").or(self.config.public_base.as_deref());
        base.map_or_else(|| format!("http://{}", self.address), |base| base.trim_end_matches('/').to_owned())
    }

    /// The other end of [`Self::fetches`], for the one who fetches. None when somebody has it already.
    pub fn take_fetches(&self) -> Option<mpsc::Receiver<Uuid>> {
        self.to_fetch.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
