//! What a replay changes: new events are stored, and waiting ones are rewritten if that was requested.

use std::collections::HashMap;
use std::time::Duration;

use gleaner_http::database::Error;
use gleaner_ingest::{Address, Channel, Event, Memory};
use serde_json::{Map, Value};
use tokio_postgres::types::{Json, Type};
use uuid::Uuid;

use super::kept::Kept;
use super::{EventReplayed, Outcome, Replayer, Stop};
use crate::media::medium::{Medium, Place, media};
use crate::webhooks::committer::{Committed, commit_alone};
use crate::webhooks::contacts;
use crate::webhooks::submit::{self, Arrival};

const WITHIN: Duration = Duration::from_secs(30);

impl Replayer {
    /// Marks which of the events exist already.
    pub(super) async fn look(&self, channel: Uuid, events: &mut [EventReplayed]) -> Result<(), Stop> {
        let names: Vec<&str> = events.iter().map(|event| event.external_id.as_str()).collect();
        let client = self.pool.get().await.map_err(|e| Error::Connect(e.to_string()))?;
        let rows = client
            .query_typed(
                "select external_id, id from public.activities where provider_id = $1 and external_id = any($2)",
                &[(&channel, Type::UUID), (&names, Type::TEXT_ARRAY)],
            )
            .await
            .map_err(Error::doing("look for activities"))?;
        let there: HashMap<String, Uuid> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        for event in events {
            event.activity = there.get(&event.external_id).copied();
            event.outcome = if event.activity.is_some() { Outcome::WouldRepeat } else { Outcome::WouldStore };
        }
        Ok(())
    }

    pub(super) async fn store(
        &self,
        kept: &Kept,
        channel: &Channel,
        events: Vec<Event>,
        remember: Vec<Memory>,
        update: bool,
        replayed: &mut [EventReplayed],
    ) -> Result<(), Stop> {
        let senders: Vec<Option<Address>> = events.iter().map(|event| event.sender.clone()).collect();
        let arrival = Arrival { events, remember, ..Arrival::default() };
        let prepared =
            submit::prepare(&self.files, channel, arrival).await.map_err(|error| Stop::Because(format!("keep the files: {error}")))?;
        let committed =
            commit_alone(&self.pool, &prepared.submission, WITHIN).await.map_err(|error| Stop::Because(format!("not stored: {error}")))?;
        prepared.written.tidy(&self.files, &committed).await;
        let stored = match committed {
            Committed::Stored(stored) => stored,
            Committed::Nothing => return Ok(()),
            Committed::Closed => return Err(Stop::Because("not stored: the channel is paused; resume it first".to_owned())),
            Committed::Replayed => return Err(Stop::Because("not stored".to_owned())),
        };
        for ((event, stored), sender) in replayed.iter_mut().zip(&stored).zip(&senders) {
            event.activity = Some(stored.id);
            event.outcome = match (stored.fresh, update) {
                (true, _) => Outcome::Stored,
                (false, false) => Outcome::Unchanged,
                (false, true) => self.rewrite(stored.id, event, sender.as_ref()).await?,
            };
        }
        self.note(kept, replayed).await?;
        let fresh: Vec<Uuid> = stored.iter().filter(|one| one.fresh).map(|one| one.id).collect();
        if channel.auto_create_contacts && !fresh.is_empty() {
            contacts::create(&self.pool, &fresh).await?;
        }
        Ok(())
    }

    /// Replaces what the event says. What was added to the activity later stays (the matched contact, the recalled data).
    async fn rewrite(&self, id: Uuid, event: &EventReplayed, sender: Option<&Address>) -> Result<Outcome, Stop> {
        let (kind, address) = match sender {
            Some(Address::Email(address)) => (Some("email"), Some(address)),
            Some(Address::Phone(address)) => (Some("phone"), Some(address)),
            Some(Address::Other(address)) => (Some("other"), Some(address)),
            None => (None, None),
        };
        let client = self.pool.get().await.map_err(|e| Error::Connect(e.to_string()))?;
        let before = client
            .query_typed_opt("select media from gleaner.media_reference where activity_id = $1", &[(&id, Type::UUID)])
            .await
            .map_err(Error::doing("look for an activity's files"))?;
        let before = before.map(|row| row.get::<_, Json<Vec<Medium>>>(0).0).unwrap_or_default();
        let media = Json(media_again(event, &before));
        let rows = client
            .query_typed(
                "with changed as (
                 update public.activities as a
                 set raw_data = $2,
                     -- Its files are where they are: the list that names them stays.
                     metadata = coalesce(a.metadata, '{}') || case when a.metadata ? 'attachments' then $3 - 'attachments' else $3 end,
                     sender_kind = coalesce($4, a.sender_kind), sender_address = coalesce($5, a.sender_address),
                     contact_id = coalesce(a.contact_id, (
                         select m.candidates[1] from gleaner.match_contact($4, $5, a.provider_id) as m where cardinality(m.candidates) = 1))
                 where a.id = $1 and a.processing_status = 'raw'
                 returning a.id, a.provider_id
                 ),
                 recorded as (
                     insert into gleaner.media_reference as m (activity_id, provider_id, media)
                     select c.id, c.provider_id, $6 from changed as c where c.provider_id is not null and $6 <> '[]'
                     on conflict (activity_id) do update set media = excluded.media
                 )
                 select from changed",
                &[
                    (&id, Type::UUID),
                    (&event.raw_data, Type::JSONB),
                    (&event.metadata, Type::JSONB),
                    (&kind, Type::TEXT),
                    (&address, Type::TEXT),
                    (&media, Type::JSONB),
                ],
            )
            .await
            .map_err(Error::doing("rewrite an activity"))?;
        Ok(if rows.is_empty() { Outcome::Begun } else { Outcome::Updated })
    }

    /// Records on the stored request which activities it produced.
    async fn note(&self, kept: &Kept, replayed: &[EventReplayed]) -> Result<(), Stop> {
        let ids: Vec<Uuid> = replayed.iter().filter_map(|event| event.activity).collect();
        let client = self.pool.get().await.map_err(|e| Error::Connect(e.to_string()))?;
        client
            .query_typed(
                "update gleaner.raw_request set activity_ids = $2, outcome = 'stored' where id = $1",
                &[(&kept.id, Type::UUID), (&ids, Type::UUID_ARRAY)],
            )
            .await
            .map_err(Error::doing("note the replay"))?;
        Ok(())
    }
}

/// The files of the event, as it is read now. Attachments that were stored the first time are where they were.
fn media_again(event: &EventReplayed, before: &[Medium]) -> Vec<Medium> {
    let nothing = Map::new();
    let object = |value: &Value| value.as_object().unwrap_or(&nothing).clone();
    let mut stored: Vec<&Medium> = before.iter().filter(|medium| matches!(medium.place, Place::File(_))).collect();
    let mut found = media(&object(&event.raw_data), &object(&event.metadata));
    for medium in found.iter_mut().filter(|medium| medium.place == Place::Nowhere) {
        if let Some(at) = stored.iter().position(|known| known.name == medium.name) {
            medium.place = stored.remove(at).place.clone();
        }
    }
    found
}
