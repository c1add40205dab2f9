//! Follow-ups: planning, moving, listing and cancelling messages to people.

use chrono::DateTime;
use serde_json::json;

use super::{Reply, refused};
use crate::mcp::act::arguments as act;
use crate::mcp::backend::Followup;
use crate::mcp::quote::{Quotes, word};
use crate::mcp::refusal::Refusal;
use crate::mcp::session::{Session, ToolReply};

const QUEUE: &str = "followups";

pub(super) async fn schedule(session: &Session, asked: act::ScheduleFollowup) -> Reply {
    let at = time(&asked.at)?;
    let payload = asked.payload.filter(|payload| !payload.is_null()).unwrap_or_else(|| json!({}));
    let action = asked.action.as_deref().unwrap_or("follow_up");
    let followup = Followup { prospect: &asked.prospect, action, at, payload: &payload };
    let row = session.service().backend().schedule_followup(&followup).await?;
    tracing::info!(prospect = asked.prospect, at, agent = session.agent(), "an assistant scheduled a follow-up");
    let value = json!({"queue": QUEUE, "key": row["id"], "scheduled_for": row["scheduled_for"], "status": row["status"]});
    Ok(ToolReply { says: format!("Scheduled as {} for {at}.", row["id"].as_str().unwrap_or_default()), value })
}

pub(super) async fn reschedule(session: &Session, asked: act::RescheduleFollowup) -> Reply {
    let at = time(&asked.at)?;
    let answers = session.service().backend().reschedule_followup(key(&asked.key)?, at).await?;
    tracing::info!(key = asked.key, at, agent = session.agent(), "an assistant rescheduled a follow-up");
    settled(&asked.key, &answers)
}

pub(super) async fn cancel(session: &Session, asked: act::CancelFollowup) -> Reply {
    let reason = format!("{} (by an assistant, {})", asked.reason, session.agent());
    let answers = session.service().backend().cancel_followup(key(&asked.key)?, &reason).await?;
    tracing::info!(key = asked.key, agent = session.agent(), "an assistant cancelled a follow-up");
    settled(&asked.key, &answers)
}

pub(super) async fn list(session: &Session, asked: act::ListFollowups) -> Reply {
    let service = session.service();
    let rows = service.backend().followups(asked.prospect.as_deref(), i64::from(asked.limit.unwrap_or(20).clamp(1, 100))).await?;
    let mut quotes = Quotes::new(service.settings().most_content);
    let mut lines = Vec::new();
    let mut items = Vec::new();
    for row in &rows {
        let text = |name: &str| word(row[name].as_str().unwrap_or_default());
        let (id, prospect, at, status) = (text("id"), text("prospect_id"), text("scheduled_for"), text("status"));
        lines.push(format!("  {id}: for {prospect}, at {at}, {status}"));
        let waits = row["deferred_reason"].as_str().map(word);
        items.push(json!({
            "key": id, "prospect": prospect, "scheduled_for": at, "status": status, "waits_because": waits,
            "payload": quotes.quote(&format!("payload of followups {id}"), &row["payload"]),
        }));
    }
    let mut says = vec![if lines.is_empty() { "No follow-up waits." } else { "Waiting follow-ups, the next first:" }.to_owned()];
    says.append(&mut lines);
    says.extend(quotes.block());
    Ok(ToolReply { says: says.join("\n"), value: json!({"items": items}) })
}

fn time(at: &str) -> Result<&str, Refusal> {
    match DateTime::parse_from_rfc3339(at) {
        Ok(_) => Ok(at),
        Err(_) => Err(Refusal::invalid("at is a time with its zone, such as 2026-03-01T09:00:00Z or 2026-03-01T10:00:00+01:00.")),
    }
}

fn key(key: &str) -> Result<&str, Refusal> {
    match uuid::Uuid::parse_str(key) {
        Ok(_) => Ok(key),
        Err(_) => Err(Refusal::invalid("key is the UUID that schedule_followup or list_followups gave.")),
    }
}

/// The answer of an act on one follow-up. One that is being sent or has ended is a refusal.
fn settled(key: &str, answers: &[(String, Option<String>)]) -> Reply {
    let (outcome, status) = answers.first().cloned().unwrap_or_else(|| ("gone".into(), None));
    let state = status.as_deref().unwrap_or("gone");
    match outcome.as_str() {
        "done" | "already" => {
            let says = if outcome == "done" {
                format!("Follow-up {key} is now {state}.")
            } else {
                format!("Follow-up {key} is {state}; nothing changed.")
            };
            Ok(ToolReply { says, value: json!({"key": key, "outcome": outcome, "status": status}) })
        }
        "lost" => Err(Refusal::new("lost", format!("Follow-up {key} is being sent or prepared at this moment. Nothing was changed."))),
        _ => Err(refused(gleaner::Outcome::Gone, QUEUE, key)),
    }
}
