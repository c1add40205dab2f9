//! Turns a parsed request into the input of the database. Attachments are written to files first, before the row that names
//! them.

use gleaner_ingest::{Attachment, Channel, Event, Memory};
use serde_json::{Value, json};
use uuid::Uuid;

use super::committer::{Committed, EventRow, Submission};
use super::raw::Kept;
use crate::files::{self, Files};

/// The parsed content of one request, ready to be committed.
#[derive(Debug, Default)]
pub(crate) struct Arrival {
    pub events: Vec<Event>,
    pub remember: Vec<Memory>,
    pub once: Option<(String, std::time::Duration)>,
    pub said: Option<String>,
    pub raw: Option<Kept>,
}

/// A submission, and the files that were written for it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub submission: Submission,
    pub written: Written,
}

/// Files written before a commit. Some of them may turn out not to be needed.
#[derive(Debug, Default)]
pub(crate) struct Written {
    raw: Option<String>,
    /// Per event: its id, and its files.
    attachments: Vec<(Uuid, Vec<String>)>,
}

pub(crate) async fn prepare(files: &Files, channel: &Channel, arrival: Arrival) -> files::Result<Prepared> {
    let mut written = Written::default();
    let mut rows = Vec::with_capacity(arrival.events.len());
    for mut event in arrival.events {
        let id = Uuid::now_v7();
        let paths = store_attachments(files, id, &mut event).await?;
        if let Some(name) = event.sender_name.take() {
            event.metadata.entry("sender_name").or_insert(Value::String(name));
        }
        rows.push(EventRow { id, event });
        written.attachments.push((id, paths));
    }
    written.raw = arrival.raw.as_ref().and_then(|kept| kept.file.clone());
    let (once, said, remember) = (arrival.once, arrival.said, arrival.remember);
    let submission = Submission { channel: channel.id, raw: arrival.raw, once, said, remember, events: rows };
    Ok(Prepared { submission, written })
}

async fn store_attachments(files: &Files, id: Uuid, event: &mut Event) -> files::Result<Vec<String>> {
    let mut paths = Vec::new();
    let attachments = std::mem::take(&mut event.attachments);
    let places = places(event.metadata.get("attachments"), &attachments);
    for (attachment, place) in attachments.into_iter().zip(places) {
        let path = Files::of_activity(id, place);
        files.put(&path, attachment.bytes).await?;
        // The list is the provider's. The location of the bytes is added to each file in it.
        if let Some(listed) = event.metadata.get_mut("attachments").and_then(|all| all.get_mut(place)).and_then(Value::as_object_mut) {
            listed.insert("file".to_owned(), json!(path));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// The position of each attachment in the row's list. The list may be longer: some files could not be read, or are stored
/// elsewhere.
fn places(listed: Option<&Value>, attachments: &[Attachment]) -> Vec<usize> {
    let listed = listed.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut next = 0;
    let mut places = Vec::new();
    for attachment in attachments {
        let is_this = |entry: &Value| {
            entry["name"] == attachment.name.as_str()
                && entry["length"].as_u64().is_none_or(|length| length == attachment.bytes.len() as u64)
        };
        let place = listed.iter().skip(next).position(is_this).map_or(next, |ahead| next + ahead);
        places.push(place);
        next = place + 1;
    }
    places
}

impl Written {
    /// Deletes files that are not needed: a redelivered event has its files already, and its request is stored with the
    /// first one.
    pub(crate) async fn tidy(self, files: &Files, committed: &Committed) {
        let (kept, raw_kept): (Vec<Uuid>, bool) = match committed {
            Committed::Stored(all) => (all.iter().filter(|one| one.fresh).map(|one| one.id).collect(), all.iter().any(|one| one.fresh)),
            Committed::Nothing => (Vec::new(), true),
            Committed::Replayed | Committed::Closed => (Vec::new(), false),
        };
        let attachments = self.attachments.into_iter().filter(|(id, _)| !kept.contains(id)).flat_map(|(_, paths)| paths);
        for path in attachments.chain(self.raw.filter(|_| !raw_kept)) {
            if let Err(error) = files.delete(&path).await {
                tracing::warn!(path, %error, "a file that is not needed could not be deleted");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_where_the_row_lists_it() {
        let file = |name: &str, bytes: &[u8]| Attachment {
            name: name.to_owned(),
            content_type: "text/plain".to_owned(),
            content_id: None,
            bytes: bytes.to_vec(),
        };
        let listed = json!([{"name": "unreadable", "length": 9}, {"name": "a", "length": 1}, {"name": "a", "length": 2}, {"name": "b"}]);
        assert_eq!(places(Some(&listed), &[file("a", b"1"), file("a", b"22"), file("b", b"")]), [1, 2, 3]);
        assert_eq!(places(Some(&listed), &[file("a", b"22")]), [2]);
        assert_eq!(places(None, &[file("a", b"1"), file("b", b"2")]), [0, 1]);
        assert_eq!(places(Some(&listed), &[file("unknown", b"1"), file("b", b"2")]), [0, 3]);
    }
}
