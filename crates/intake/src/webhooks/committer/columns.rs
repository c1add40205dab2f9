//! Turns the contents of a group into one array per parameter of `gleaner.ingest_activities`.

use bytes::Bytes;
use gleaner_ingest::Address;
use gleaner_ingest::event::{Direction, Kind};
use serde_json::{Map, Value, json};
use tokio_postgres::types::{Json, ToSql, Type};
use uuid::Uuid;

use super::statement::{EventRow, Submission};
use crate::media::medium::media;

/// The arrays, in the order of the function's parameters: per request, per event, and the rare values.
#[derive(Debug, Default)]
pub(super) struct Columns<'a> {
    channels: Vec<Uuid>,
    raw_ids: Vec<Option<Uuid>>,
    methods: Vec<Option<&'a str>>,
    targets: Vec<Option<&'a str>>,
    headers: Vec<Option<Json<&'a Map<String, Value>>>>,
    bodies: Vec<Option<&'a [u8]>>,
    body_files: Vec<Option<&'a str>>,
    requests: Vec<i32>,
    ids: Vec<Uuid>,
    kinds: Vec<&'static str>,
    directions: Vec<&'static str>,
    raw_data: Vec<Json<&'a Map<String, Value>>>,
    metadata: Vec<Json<&'a Map<String, Value>>>,
    external_ids: Vec<&'a str>,
    sender_kinds: Vec<Option<&'static str>>,
    sender_addresses: Vec<Option<&'a str>>,
    recalls: Vec<Option<&'a str>>,
    once: Option<Value>,
    remember: Option<Value>,
    media: Option<Value>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &[&'a Submission]) -> Self {
        let mut all = Self::default();
        let (mut once, mut remember, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
        for (submission, request) in batch.iter().zip(1..) {
            all.request(submission);
            for row in &submission.events {
                all.event(request, row);
                let media = media(&row.event.raw_data, &row.event.metadata);
                if !media.is_empty() {
                    recorded.push(json!({"event": all.ids.len(), "media": media}));
                }
            }
            once.extend(submission.once.iter().map(
                |(token, lifetime)| json!({"request": request, "token": token, "said": submission.said, "seconds": lifetime.as_secs_f64()}),
            ));
            remember.extend(submission.remember.iter().map(
                |memory| json!({"request": request, "key": memory.key, "value": memory.value, "seconds": memory.lifetime.as_secs_f64()}),
            ));
        }
        all.once = (!once.is_empty()).then(|| once.into());
        all.media = (!recorded.is_empty()).then(|| recorded.into());
        all.remember = (!remember.is_empty()).then(|| remember.into());
        all
    }

    fn request(&mut self, submission: &'a Submission) {
        let raw = submission.raw.as_ref();
        self.channels.push(submission.channel);
        self.raw_ids.push(raw.map(|raw| raw.id));
        self.methods.push(raw.map(|raw| raw.method.as_str()));
        self.targets.push(raw.map(|raw| raw.target.as_str()));
        self.headers.push(raw.map(|raw| Json(&raw.headers)));
        self.bodies.push(raw.and_then(|raw| raw.body.as_ref()).map(Bytes::as_ref));
        self.body_files.push(raw.and_then(|raw| raw.file.as_deref()));
    }

    fn event(&mut self, request: i32, EventRow { id, event }: &'a EventRow) {
        self.requests.push(request);
        self.ids.push(*id);
        self.kinds.push(kind(event.kind));
        self.directions.push(match event.direction {
            Direction::Inbound => "inbound",
            Direction::Outbound => "outbound",
        });
        self.raw_data.push(Json(&event.raw_data));
        self.metadata.push(Json(&event.metadata));
        self.external_ids.push(&event.external_id);
        let sender = event.sender.as_ref().map(|sender| match sender {
            Address::Email(address) => ("email", address.as_str()),
            Address::Phone(address) => ("phone", address.as_str()),
            Address::Other(address) => ("other", address.as_str()),
        });
        self.sender_kinds.push(sender.map(|(kind, _)| kind));
        self.sender_addresses.push(sender.map(|(_, address)| address));
        self.recalls.push(event.recall.as_deref());
    }

    pub(super) fn parameters<'p>(&'p self, patience: &'p String) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
        vec![
            (patience, Type::TEXT),
            (&self.channels, Type::UUID_ARRAY),
            (&self.raw_ids, Type::UUID_ARRAY),
            (&self.methods, Type::TEXT_ARRAY),
            (&self.targets, Type::TEXT_ARRAY),
            (&self.headers, Type::JSONB_ARRAY),
            (&self.bodies, Type::BYTEA_ARRAY),
            (&self.body_files, Type::TEXT_ARRAY),
            (&self.requests, Type::INT4_ARRAY),
            (&self.ids, Type::UUID_ARRAY),
            (&self.kinds, Type::TEXT_ARRAY),
            (&self.directions, Type::TEXT_ARRAY),
            (&self.raw_data, Type::JSONB_ARRAY),
            (&self.metadata, Type::JSONB_ARRAY),
            (&self.external_ids, Type::TEXT_ARRAY),
            (&self.sender_kinds, Type::TEXT_ARRAY),
            (&self.sender_addresses, Type::TEXT_ARRAY),
            (&self.recalls, Type::TEXT_ARRAY),
            (&self.once, Type::JSONB),
            (&self.remember, Type::JSONB),
            (&self.media, Type::JSONB),
        ]
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Email => "email",
        Kind::Call => "call",
        Kind::Sms => "sms",
        Kind::Meeting => "meeting",
        Kind::Note => "note",
        Kind::Task => "task",
        Kind::Whatsapp => "whatsapp",
        Kind::Other => "other",
    }
}
