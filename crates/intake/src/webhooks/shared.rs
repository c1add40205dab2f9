//! What the webhook handlers share.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use gleaner_http::database::Pool;
use gleaner_http::memory::Memory;
use gleaner_ingest::{Channel, Request};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::committer::Committer;
use super::contacts::Newcomers;
use super::limits::Limits;
use super::refusals::Refusals;
use super::settings::Settings;
use crate::channels::Channels;
use crate::files::Files;

/// Provides public keys that sign requests. Their owner changes them at any time, so they cannot be a setting of the
/// channel.
pub trait SigningKeys: Send + Sync + 'static {
    /// Returns the channel with the keys that this request needs. Returns it unchanged where its provider has no such keys.
    fn with_keys<'a>(&'a self, channel: Arc<Channel>, request: &'a Request<'a>) -> BoxFuture<'a, Arc<Channel>>;
}

/// What is needed to store an event, however it arrived.
#[derive(Debug, Clone)]
pub struct Parts {
    pub pool: Pool,
    pub channels: Channels,
    pub files: Files,
    pub committer: Committer,
    pub newcomers: Newcomers,
}

pub struct Webhooks {
    pub(super) settings: Settings,
    pub(super) pool: Pool,
    pub(super) channels: Channels,
    pub(super) files: Files,
    pub(super) keys: Arc<dyn SigningKeys>,
    pub(super) committer: Committer,
    pub(super) newcomers: Newcomers,
    pub(super) refusals: Refusals,
    pub(super) limits: Limits,
    pub(super) memory: Memory,
    /// Channels whose provider has something to fetch.
    pub(super) fetches: mpsc::Sender<Uuid>,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Webhooks {
    /// `fetches` receives channels whose provider has something to fetch.
    pub fn new(settings: Settings, parts: Parts, keys: Arc<dyn SigningKeys>, fetches: mpsc::Sender<Uuid>) -> Self {
        let Parts { pool, channels, files, committer, newcomers } = parts;
        let (limits, memory) = (Limits::new(&settings.limits), Memory::new(settings.limits.body_memory));
        Self { settings, pool, channels, files, keys, committer, newcomers, refusals: Refusals::default(), limits, memory, fetches }
    }

    /// How many verified requests wait to be stored.
    pub fn waiting(&self) -> usize {
        self.committer.waiting()
    }

    /// Writes the counted refusals to the database.
    pub async fn flush_refusals(&self) {
        self.refusals.flush(&self.pool).await;
    }

    /// The public URL that the sender has: the channel's own, else the server's.
    pub(super) fn public_base(&self, channel: &Channel) -> String {
        let base = channel.settings.text("public_url").unwrap_or(&self.settings.public_base);
        base.trim_end_matches('/').to_owned()
    }
}
