//! Processes stored requests again, after a bug of ours is fixed: `gleaner replay`.
//!
//! A replay parses but does not verify: the request was authentic when it was stored, and its signature was not stored. Its
//! events are stored as usual, each once, so a replay may be repeated.

mod kept;
mod store;

use gleaner_http::database::Pool;
use gleaner_ingest::provider::Inbound;
use gleaner_ingest::{Event, Kind};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

pub use self::kept::Which;
use crate::channels::Channels;
use crate::files::Files;

/// What a replay needs.
#[derive(Debug, Clone)]
pub struct Replayer {
    pub pool: Pool,
    pub channels: Channels,
    pub files: Files,
}

/// How to replay.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// Only say what would be stored.
    pub dry_run: bool,
    /// Rewrite existing activities, as long as no worker has begun to process them.
    pub update: bool,
}

/// The result of replaying one request.
#[derive(Debug, Clone, Serialize)]
pub struct Replayed {
    pub request: Uuid,
    /// As PostgreSQL prints it.
    pub received_at: String,
    /// The name of the channel, if it still exists.
    pub channel: Option<String>,
    pub events: Vec<EventReplayed>,
    /// Why there is nothing to store, or why nothing could be stored.
    pub note: Option<String>,
    pub failed: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct EventReplayed {
    pub external_id: String,
    pub outcome: Outcome,
    pub activity: Option<Uuid>,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub raw_data: Value,
    pub metadata: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// In a dry run: would become a new activity.
    WouldStore,
    /// In a dry run: exists already.
    WouldRepeat,
    Stored,
    /// Existed already, and is unchanged.
    Unchanged,
    /// Existed already, was waiting, and was rewritten.
    Updated,
    /// Existed already, and a worker has begun to process it, so it is unchanged.
    Begun,
}

/// Why a replay stopped.
enum Stop {
    /// Only this request failed. The sentence is for people.
    Because(String),
    Database(gleaner_http::database::Error),
}

impl From<gleaner_http::database::Error> for Stop {
    fn from(error: gleaner_http::database::Error) -> Self {
        Self::Database(error)
    }
}

impl Replayer {
    /// Replays one request. None when it is not stored, or no longer.
    pub async fn replay(&self, id: Uuid, how: How) -> gleaner_http::database::Result<Option<Replayed>> {
        let Some(kept) = self.load(id).await? else { return Ok(None) };
        let received_at = kept.received_at.clone();
        let mut replayed = Replayed { request: id, received_at, channel: None, events: Vec::new(), note: None, failed: false };
        match self.read_again(&kept, how, &mut replayed).await {
            Ok(note) => replayed.note = note,
            Err(Stop::Because(note)) => (replayed.note, replayed.failed) = (Some(note), true),
            Err(Stop::Database(error)) => return Err(error),
        }
        Ok(Some(replayed))
    }

    async fn read_again(&self, kept: &kept::Kept, how: How, replayed: &mut Replayed) -> Result<Option<String>, Stop> {
        let opened = self.channels.get(&kept.channel.to_string()).await;
        let channel = opened.map_err(|error| Stop::Because(format!("the channel: {error}")))?.channel;
        replayed.channel = Some(channel.name.clone());
        let provider = self.channels.provider(&channel.provider_code);
        let provider = provider.ok_or_else(|| Stop::Because(format!("this version knows no provider {:?}", channel.provider_code)))?;
        let (head, body) = (kept.head(), self.body(kept).await?);
        let request = head.request(&body, kept.received);
        let inbound = provider.normalise(&channel, &request).map_err(|refusal| Stop::Because(refusal.to_string()))?;
        let (events, remember) = match inbound {
            Inbound::Events { events, remember } => (events, remember),
            Inbound::Nothing { remember, .. } => (Vec::new(), remember),
            Inbound::Reply(_) => return Ok(Some("a handshake: nothing to store".to_owned())),
            Inbound::Fetch => return Ok(Some("a hint to fetch: nothing to store; `gleaner channels poll` fetches".to_owned())),
        };
        replayed.events = events.iter().map(describe).collect();
        if how.dry_run {
            self.look(channel.id, &mut replayed.events).await?;
        } else {
            self.store(kept, &channel, events, remember, how.update, &mut replayed.events).await?;
        }
        Ok(replayed.events.is_empty().then(|| "authentic, and nothing to queue".to_owned()))
    }
}

fn describe(event: &Event) -> EventReplayed {
    EventReplayed {
        external_id: event.external_id.clone(),
        outcome: Outcome::WouldStore,
        activity: None,
        kind: event.kind,
        raw_data: event.raw_data.clone().into(),
        metadata: event.metadata.clone().into(),
    }
}
