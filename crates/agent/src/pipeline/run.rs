//! Runs one item through its stages. Each finished stage is stored at once, and stages that were finished before are not
//! repeated.

use std::path::Path;
use std::time::Instant;

use chrono::{DateTime, FixedOffset, Local, Offset as _, Utc};
use gleaner::{Failure, Item};
use gleaner_stages::builtin::What;
use gleaner_stages::failure::{cancelled, invalid};
use gleaner_stages::recording::Recording;
use gleaner_stages::{Report, Seen, Share, Stage, Work, document};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Services;
use super::file::Record;
use super::plan::{Kind, Plan, Queue};
use super::results::Results;

/// One run.
pub(super) struct Run<'a> {
    pub plan: &'a Plan,
    pub queue: &'a Queue,
    pub kind: &'a Kind,
    pub name: &'a str,
    pub item: &'a Item,
    pub services: &'a Services,
    pub report: &'a dyn Report,
}

impl Run<'_> {
    pub(super) async fn through(&self) -> Result<Value, Failure> {
        let record = match &self.queue.record {
            Some(record) => self.record(record).await?,
            None => None,
        };
        let written = written(self.queue.record.as_ref(), record.as_ref(), self.plan.utc_offset);
        let home: &Path = &self.services.home;
        let recording = Recording::of(self.item, record.as_ref(), &self.services.fetch, home, self.plan.limits);
        let raw = self.text(record.as_ref());
        if raw.is_none() && !recording.exists() && !is_file(&self.item.payload) {
            return Err(invalid(format!("the item has neither text (in {}) nor a recording", self.queue.text)));
        }
        let raw = raw.unwrap_or_default();
        let mut results = Results::behind(self.item.partial.as_ref());
        let count = self.kind.stages.len() as f64;
        for (n, stage) in self.kind.stages.iter().enumerate() {
            let (seen, text) = (results.seen(), results.text().unwrap_or(&raw).to_owned());
            if let Some(why) = unfit(stage, &text, record.as_ref(), &recording, results.text().is_some()) {
                results.skip(stage, why);
                continue;
            }
            let mut seen = Seen {
                queue: self.name,
                item: self.item,
                record: record.as_ref(),
                text: &text,
                written,
                results: &seen,
                recording: &recording,
                fetch: &*self.services.fetch,
                fingerprint: "",
                models: &self.services.models,
            };
            let fingerprint = fingerprint(stage, &seen)?;
            if results.resume(stage, &fingerprint) {
                tracing::debug!(queue = self.name, id = self.item.key, stage = stage.name, "finished before");
                continue;
            }
            seen.fingerprint = &fingerprint;
            let share =
                Share { report: self.report, stage: &stage.name, from: n as f64 / count * 100.0, to: (n + 1) as f64 / count * 100.0 };
            // A built-in stage takes a moment and is reported when it is done. Slower stages are also reported when they start.
            if !matches!(stage.work, Work::Builtin(_)) && !share.progress(None, Some(0.0), None).await {
                return Err(cancelled());
            }
            let began = Instant::now();
            let output = stage.run(&seen, &share).await?;
            let news = results.add(stage, fingerprint, output, began.elapsed().as_secs_f64());
            let last = n + 1 == self.kind.stages.len();
            // The last stage is stored by the completion, together with everything else.
            if !last && !share.progress(None, Some(100.0), Some(&news)).await {
                return Err(cancelled());
            }
        }
        Ok(results.finish())
    }

    async fn record(&self, record: &Record) -> Result<Option<Value>, Failure> {
        let value = match &record.value {
            Some(path) => text_at(&self.item.payload, path).ok_or_else(|| invalid(format!("the payload has no {path}")))?,
            None => self.item.key.clone(),
        };
        self.services.fetch.row(&record.table, &record.key, &value).await
    }

    /// The text of the item. None if the item has none.
    fn text(&self, record: Option<&Value>) -> Option<String> {
        let payload = &self.item.payload;
        if payload["source_type"] == "url" {
            return None;
        }
        let from_record = || self.queue.record.as_ref()?.text.as_ref().and_then(|column| record?[column].as_str()).map(str::to_owned);
        payload.as_str().map(str::to_owned).or_else(|| text_at(payload, &self.queue.text)).or_else(from_record)
    }
}

/// Why a stage does not apply to this item.
fn unfit(stage: &Stage, text: &str, record: Option<&Value>, recording: &Recording<'_>, read: bool) -> Option<&'static str> {
    if stage.needs_audio() {
        return (!recording.exists()).then_some("the item has no recording");
    }
    match &stage.work {
        Work::Builtin(builtin) if builtin.what == What::Document => match document::file_of(record) {
            None => Some("the item has no file"),
            Some(_) if !text.trim().is_empty() => Some("the file was read before"),
            Some(_) => None,
        },
        Work::Builtin(builtin) if builtin.what == What::Clean && read => Some("what is spoken needs no cleaning"),
        Work::Builtin(_) | Work::Chat(_) | Work::Embed(_) if text.trim().is_empty() => Some("the item has no text"),
        _ => None,
    }
}

/// A message that is a file, such as a picture. It is valid, but it contains no text to read.
fn is_file(payload: &Value) -> bool {
    payload["source_type"] == "url" && payload["content"].as_str().is_some_and(|content| !content.is_empty())
}

/// Looks up a path: `a.b` in `{"a": {"b": "text"}}`.
fn text_at(value: &Value, path: &str) -> Option<String> {
    let found = path.split('.').try_fold(value, |value, name| value.get(name))?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// When the item was written, in the time zone of its readers.
fn written(record: Option<&Record>, row: Option<&Value>, offset: Option<FixedOffset>) -> DateTime<FixedOffset> {
    let created = record.and_then(|record| row?[&record.created].as_str()).and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let at = created.map_or_else(Utc::now, |created| created.to_utc());
    match offset {
        Some(offset) => at.with_timezone(&offset),
        None => {
            let local = at.with_timezone(&Local);
            at.with_timezone(&local.offset().fix())
        }
    }
}

/// The hash of everything that decides the output of a stage.
fn fingerprint(stage: &Stage, seen: &Seen<'_>) -> Result<String, Failure> {
    let decides = serde_json::json!([stage.configuration(seen.models), stage.input(seen)?]).to_string();
    Ok(hex::encode(&Sha256::digest(decides)[..12]))
}
