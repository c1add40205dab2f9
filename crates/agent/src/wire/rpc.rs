//! The acts as functions of the database, as every Supabase project exposes them.

use std::time::{Duration, Instant};

use ::http::Method;
use gleaner::queue::{Answer, Claim, Claimed, Completion, Failure, Held, Progress};
use gleaner::{Error, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::http::{Call, Http, Reply};
use super::shape::{Shape, outcome, text};

/// The limit of rows in one query: their keys are part of the URL, whose length is limited.
const MOST_KEYS: usize = 100;

/// The functions of one queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Functions<'a> {
    pub http: &'a Http,
    pub shape: &'a Shape,
}

#[derive(Deserialize)]
struct ActResponse {
    id: Value,
    outcome: String,
    status: Option<String>,
    due_at: Option<String>,
}

impl Functions<'_> {
    async fn call(&self, act: &str, arguments: &Value, repeat: bool) -> Result<Reply> {
        self.call_function(&format!("{act}_{}", self.shape.queue), act, arguments, repeat).await
    }

    async fn call_function(&self, name: &str, act: &str, arguments: &Value, repeat: bool) -> Result<Reply> {
        let path = format!("/rest/v1/rpc/{name}");
        let call = Call {
            profile: Some("gleaner"),
            body: Some(arguments),
            repeat,
            ..Call::new(Method::POST, &path, format!("{act} in {}", self.shape.queue))
        };
        self.http.call(&call).await
    }

    async fn responses(&self, act: &str, arguments: &Value) -> Result<Vec<ActResponse>> {
        let body = self.call(act, arguments, true).await?.body;
        serde_json::from_value(body)
            .map_err(|error| Error::Other(format!("{act} in {}: the answer cannot be read: {error}", self.shape.queue)))
    }

    async fn many(&self, act: &str, arguments: &Value) -> Result<Vec<Answer>> {
        Ok(self.responses(act, arguments).await?.into_iter().map(answer).collect())
    }

    async fn one(&self, act: &str, arguments: &Value) -> Result<ActResponse> {
        self.responses(act, arguments).await?.pop().ok_or_else(|| Error::Other(format!("{act} in {} gave no answer", self.shape.queue)))
    }

    pub(super) async fn claim(&self, claim: &Claim, request: Uuid, first: bool) -> Result<Claimed> {
        let mut filter = Map::new();
        match (&self.shape.owner, &claim.owner) {
            (Some(_), Some(owner)) => drop(filter.insert("p_owner".into(), json!(owner))),
            (None, Some(_)) => return Err(self.unsupported("has no owners: claim without one")),
            _ => {}
        }
        match (&self.shape.kind, &claim.kinds) {
            (Some(_), Some(kinds)) => drop(filter.insert("p_kinds".into(), json!(kinds))),
            (None, Some(_)) => return Err(self.unsupported("has no kinds: claim without them")),
            _ => {}
        }
        let mut arguments = filter.clone();
        arguments.insert("p_agent".into(), json!(claim.agent));
        arguments.insert("p_limit".into(), json!(claim.limit));
        arguments.insert("p_request".into(), json!(request));
        arguments.insert("p_started".into(), json!(claim.started));
        if let Some(hold) = claim.hold {
            arguments.insert("p_hold".into(), json!(interval(hold)));
        }
        if !claim.early.is_zero() {
            arguments.insert("p_early".into(), json!(interval(claim.early)));
        }
        let sent = Instant::now();
        let reply = self.call("claim", &Value::Object(arguments), false).await?;
        let clock = &self.http.clock;
        let rows: Vec<&Map<String, Value>> = reply.body.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
        // The rows of a repeated claim may have been claimed some time ago.
        let newest = rows.iter().filter_map(|row| row.get(&self.shape.lease)?.as_i64()).max();
        if let Some(lease) = newest.filter(|_| first) {
            clock.saw_lease(lease, sent, reply.date);
        }
        let items: Vec<_> = rows.into_iter().filter_map(|row| self.shape.item(row, clock)).collect();
        let next_due_in =
            if items.is_empty() { self.next_due(Value::Object(filter)).await?.map(|due| due.saturating_sub(claim.early)) } else { None };
        Ok(Claimed { items, next_due_in })
    }

    async fn next_due(&self, filter: Value) -> Result<Option<Duration>> {
        let wait = self.call("next_due", &filter, true).await?.body;
        Ok(wait.as_str().and_then(read_interval))
    }

    /// `start` and `release`.
    pub(super) async fn held(&self, act: &str, held: &[Held]) -> Result<Vec<Answer>> {
        let (keys, leases): (Vec<&str>, Vec<i64>) = held.iter().map(|held| (held.key.as_str(), held.lease)).unzip();
        self.many(act, &json!({"p_ids": keys, "p_leases": leases})).await
    }

    pub(super) async fn complete(&self, done: &[Completion]) -> Result<Vec<Answer>> {
        // In an array of results, PostgreSQL reads a result that is itself an array as another dimension.
        if done.iter().any(|done| done.result.as_ref().is_some_and(Value::is_array)) {
            let mut answers = Vec::with_capacity(done.len());
            for Completion { held, result } in done {
                let arguments = json!({"p_id": held.key, "p_lease": held.lease, "p_result": result});
                answers.push(answer(self.one("complete", &arguments).await?));
            }
            return Ok(answers);
        }
        let keys: Vec<&str> = done.iter().map(|done| done.held.key.as_str()).collect();
        let leases: Vec<i64> = done.iter().map(|done| done.held.lease).collect();
        let results: Vec<&Option<Value>> = done.iter().map(|done| &done.result).collect();
        // Answered once per outcome: of a thousand items nearly all are done.
        let arguments = json!({"p_ids": keys, "p_leases": leases, "p_results": results});
        let groups = self.call_function(&format!("complete_{}_many", self.shape.queue), "complete", &arguments, true).await?.body;
        let answers = groups.as_array().into_iter().flatten().flat_map(|group| {
            let (outcome, status) = (outcome(group["outcome"].as_str().unwrap_or_default()), group["status"].as_str().map(str::to_owned));
            let keys = group["ids"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
            keys.into_iter().map(move |key| Answer { key, outcome, status: status.clone() })
        });
        Ok(answers.collect())
    }

    pub(super) async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        self.many("cancel", &json!({"p_ids": keys, "p_reason": reason})).await
    }

    pub(super) async fn progress(&self, held: &Held, progress: &Progress) -> Result<(Answer, Duration)> {
        let Progress { stage, percent, partial, hold } = progress;
        let mut arguments = json!({"p_id": held.key, "p_lease": held.lease, "p_stage": stage, "p_percent": percent, "p_partial": partial});
        if let Some(hold) = hold {
            arguments["p_hold"] = json!(interval(*hold));
        }
        let response = self.one("progress", &arguments).await?;
        let left = self.http.clock.until(response.due_at.as_deref());
        Ok((answer(response), left))
    }

    pub(super) async fn fail(&self, held: &Held, failure: &Failure) -> Result<Answer> {
        let mut arguments = json!({
            "p_id": held.key, "p_lease": held.lease, "p_message": failure.message, "p_category": failure.category, "p_retryable": failure.retryable,
        });
        if let Some(wait) = failure.retry_in {
            arguments["p_retry_in"] = json!(interval(wait));
        }
        self.one("fail", &arguments).await.map(answer)
    }

    pub(super) async fn snooze(&self, held: &Held, by: Duration) -> Result<Answer> {
        let arguments = json!({"p_id": held.key, "p_lease": held.lease, "p_until": self.http.clock.after(by)});
        self.one("snooze", &arguments).await.map(answer)
    }

    pub(super) async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>> {
        let mut arguments = json!({"p_id": key});
        if let (Some(_), Some(owner)) = (&self.shape.owner, owner) {
            arguments["p_owner"] = json!(owner);
        }
        Ok(Some(self.call("explain", &arguments, true).await?.body).filter(|response| !response.is_null()))
    }

    pub(super) async fn ended(&self, held: &[Held]) -> Result<Vec<Held>> {
        let (shape, mut over) = (self.shape, Vec::new());
        for some in held.chunks(MOST_KEYS) {
            let keys: Vec<String> = some.iter().map(|held| quoted(&held.key)).collect();
            let list: String = form_urlencoded::byte_serialize(format!("in.({})", keys.join(",")).as_bytes()).collect();
            let (key, lease, status) = (&shape.key, &shape.lease, &shape.status);
            let path = format!("/rest/v1/{}?select={key},{lease},{status}&{key}={list}", shape.table);
            let call =
                Call { profile: Some(&shape.schema), ..Call::new(Method::GET, &path, format!("check running work in {}", shape.queue)) };
            let rows = self.http.call(&call).await?.body;
            for row in rows.as_array().into_iter().flatten() {
                let (id, now) = (row.get(key).map(text).unwrap_or_default(), row.get(lease).and_then(Value::as_i64));
                let is_held = row.get(status).is_some_and(|word| shape.held.contains(&text(word)));
                let gone = some.iter().filter(|held| held.key == id && !(is_held && now == Some(held.lease)));
                over.extend(gone.cloned());
            }
        }
        Ok(over)
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::Unsupported { queue: self.shape.queue.clone(), what: what.into() }
    }
}

fn answer(response: ActResponse) -> Answer {
    Answer { key: text(&response.id), outcome: outcome(&response.outcome), status: response.status }
}

/// A value in a PostgREST list.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

fn interval(duration: Duration) -> String {
    format!("{} seconds", duration.as_secs_f64())
}

/// `1 day 02:03:04.5`, as PostgreSQL writes an interval. Months and years have no fixed length, and no worker waits that long.
fn read_interval(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word.contains(':') {
            // The sign applies to the whole value, also before a zero.
            let (mut place, word) = word.strip_prefix('-').map_or((3600.0, word), |rest| (-3600.0, rest));
            for part in word.split(':') {
                seconds += part.parse::<f64>().ok()? * place;
                place /= 60.0;
            }
        } else {
            let count: f64 = word.parse().ok()?;
            let unit = words.next()?;
            seconds += count
                * match unit {
                    _ if unit.starts_with("day") => 86_400.0,
                    _ if unit.starts_with("mon") => 30.0 * 86_400.0,
                    _ if unit.starts_with("year") => 365.0 * 86_400.0,
                    _ => return None,
                };
        }
    }
    Some(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_postgresql_writes_them() {
        for (text, seconds) in [
            ("00:00:00", Some(0.0)),
            ("00:04:59.962834", Some(299.962_834)),
            ("1 day 02:00:00", Some(93_600.0)),
            ("400 days", Some(34_560_000.0)),
            ("-00:00:01", Some(0.0)),
            ("soon", None),
            ("3 parsecs", None),
        ] {
            assert_eq!(read_interval(text), seconds.map(Duration::from_secs_f64), "{text}");
        }
    }

    #[test]
    fn a_key_in_a_list_cannot_end_it() {
        assert_eq!(quoted(r#"a"),id.gt.("b\"#), r#""a\"),id.gt.(\"b\\""#);
    }
}
