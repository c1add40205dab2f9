//! What each act does: it takes the arguments and returns the queue's answer as text and as fields.

mod followups;

use std::time::Duration;

use gleaner::queue::{Answer, Item};
use gleaner::{Completion, Failure, Held, Outcome, Progress};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::act::{Act, arguments as act};
use super::backend::Link;
use super::quote::{Quotes, sentence, word};
use super::refusal::Refusal;
use super::session::{Session, ToolReply};

/// Bytes of an item's content in a list: enough to recognize it.
const EXCERPT: usize = 300;
/// Rows read for each row that is listed, because other agents may hold some of them.
const LOOKS: i64 = 4;

type Reply = Result<ToolReply, Refusal>;

pub(super) async fn call(session: &Session, act: Act, arguments: Value) -> Reply {
    match act {
        Act::List => list(session, read(act, arguments)?).await,
        Act::Claim => claim(session, read(act, arguments)?).await,
        Act::Progress => progress(session, read(act, arguments)?).await,
        Act::Complete => complete(session, read(act, arguments)?).await,
        Act::Fail => fail(session, read(act, arguments)?).await,
        Act::Snooze => snooze(session, read(act, arguments)?).await,
        Act::Release => release(session, read(act, arguments)?).await,
        Act::Explain => explain(session, read(act, arguments)?).await,
        Act::Cancel => cancel(session, read(act, arguments)?).await,
        Act::LinkContact => link_contact(session, read(act, arguments)?).await,
        Act::ScheduleFollowup => followups::schedule(session, read(act, arguments)?).await,
        Act::RescheduleFollowup => followups::reschedule(session, read(act, arguments)?).await,
        Act::CancelFollowup => followups::cancel(session, read(act, arguments)?).await,
        Act::ListFollowups => followups::list(session, read(act, arguments)?).await,
    }
}

fn read<T: DeserializeOwned>(act: Act, arguments: Value) -> Result<T, Refusal> {
    let arguments = if arguments.is_null() { json!({}) } else { arguments };
    serde_json::from_value(arguments).map_err(|error| {
        Refusal::invalid(format!(
            "The arguments of {} do not fit: {}. Correct them and call again.",
            act.name(),
            sentence(&error.to_string())
        ))
    })
}

async fn list(session: &Session, asked: act::List) -> Reply {
    let service = session.service();
    let limit = i64::from(asked.limit.unwrap_or(10).clamp(1, 50));
    let names = match asked.queue {
        Some(queue) => vec![service.transport(&queue).await?.queue().to_owned()],
        None => service.queues().await?,
    };
    let mut quotes = Quotes::new(service.settings().most_content);
    let mut queues = Vec::new();
    let mut says = Vec::new();
    for name in names {
        // A queue that this login may not read is no reason to hide the others.
        let rows = match service.backend().due(&name, asked.kind.as_deref(), limit * LOOKS).await {
            Ok(rows) => rows,
            Err(error) => {
                let refusal = Refusal::from(error);
                says.push(format!("{name}: {}", refusal.says));
                queues.push(json!({"queue": name, "error": {"code": refusal.code, "message": refusal.says}}));
                continue;
            }
        };
        let transport = service.transport(&name).await?;
        let mut items = Vec::new();
        let mut lines = Vec::new();
        for row in rows {
            if items.len() as i64 == limit {
                break;
            }
            let reply = transport.explain(&row.key, service.settings().owner.as_deref()).await?;
            if reply.is_none_or(|reply| reply["claimable"] != true) {
                continue;
            }
            let kind = row.kind.as_deref().map(word);
            let waits = -row.due_in.unwrap_or_default().round() as i64;
            lines.push(format!(
                "  {}: kind {}, due for {waits} s, {} failed attempts",
                row.key,
                kind.as_deref().unwrap_or("none"),
                row.attempts
            ));
            items.push(json!({
                "key": row.key, "kind": kind, "due_for_seconds": waits, "attempts": row.attempts,
                "excerpt": quotes.quote_at_most(&format!("excerpt of {} {}", name, row.key), &row.payload, EXCERPT),
            }));
        }
        says.push(if lines.is_empty() { format!("{name}: nothing to claim now.") } else { format!("{name}:\n{}", lines.join("\n")) });
        queues.push(json!({"queue": name, "claimable": items}));
    }
    let held: Vec<Value> = service
        .renewal()
        .held(session.agent())
        .into_iter()
        .map(|(queue, key, lease)| json!({"queue": queue, "key": key, "lease": lease}))
        .collect();
    if !held.is_empty() {
        says.push(format!("You hold: {}", Value::from(held.clone())));
    }
    says.extend(quotes.block());
    Ok(ToolReply { says: says.join("\n"), value: json!({"queues": queues, "held": held}) })
}

async fn claim(session: &Session, asked: act::Claim) -> Reply {
    let service = session.service();
    let transport = service.transport(&asked.queue).await?;
    let limit = asked.limit.unwrap_or(1);
    if !(1..=10).contains(&limit) {
        return Err(Refusal::invalid("limit is from 1 to 10: take no more than you will work on now."));
    }
    let claim = gleaner::Claim {
        owner: service.settings().owner.clone(),
        kinds: asked.kinds.filter(|kinds| !kinds.is_empty()),
        ..gleaner::Claim::by(session.agent()).limit(i32::try_from(limit).unwrap_or(1)).started()
    };
    let claimed = service.renewal().claim(&transport, claim).await?;
    let mut quotes = Quotes::new(service.settings().most_content);
    let queue = &asked.queue;
    let items: Vec<Value> = claimed.items.iter().map(|item| shown(queue, item, &mut quotes)).collect();
    let mut says = match (items.as_slice(), claimed.next_due_in) {
        ([], Some(wait)) => vec![format!("Nothing to claim in {queue} now; the next item is due in {} s.", wait.as_secs())],
        ([], None) => vec![format!("Nothing waits in {queue}.")],
        (items, _) => {
            vec![format!("You hold {} of {queue}. Name queue, key and lease in every act on an item.", count(items.len(), "item"))]
        }
    };
    says.extend(claimed.items.iter().map(|item| {
        format!(
            "key {}, lease {}, kind {}, {} failed attempts; yours for as long as you work on it, at most {} s",
            item.key,
            item.lease,
            item.kind.as_deref().map_or_else(|| "none".to_owned(), word),
            item.attempts,
            item.deadline_in.as_secs()
        )
    }));
    says.extend(quotes.block());
    let next = claimed.next_due_in.map(|wait| wait.as_secs_f64());
    Ok(ToolReply { says: says.join("\n"), value: json!({"agent": session.agent(), "items": items, "next_due_seconds": next}) })
}

fn shown(queue: &str, item: &Item, quotes: &mut Quotes) -> Value {
    let mut shown = json!({
        "queue": queue, "key": item.key, "lease": item.lease, "kind": item.kind.as_deref().map(word), "attempts": item.attempts,
        "lease_seconds": item.lease_for.as_secs(), "deadline_seconds": item.deadline_in.as_secs(),
        "content": quotes.quote(&format!("content of {queue} {}", item.key), &item.payload),
    });
    if let Some(partial) = item.partial.as_ref().filter(|partial| !partial.is_null()) {
        shown["partial"] = quotes.quote(&format!("partial result of {queue} {}", item.key), partial);
    }
    shown
}

async fn progress(session: &Session, asked: act::Progress) -> Reply {
    let transport = session.service().transport(&asked.queue).await?;
    if asked.percent.is_some_and(|percent| !(0.0..=100.0).contains(&percent)) {
        return Err(Refusal::invalid("percent is from 0 to 100."));
    }
    let progress = Progress { stage: asked.stage, percent: asked.percent, partial: asked.partial, hold: None };
    let (answer, left) = transport.progress(&Held::new(&asked.key, asked.lease), &progress).await?;
    let mut reply = settle(session, &asked.queue, &asked.key, asked.lease, &answer, false)?;
    reply.value["lease_seconds"] = json!(left.as_secs());
    reply.says = format!("Noted. Item {} is still yours.", asked.key);
    Ok(reply)
}

async fn complete(session: &Session, asked: act::Complete) -> Reply {
    let transport = session.service().transport(&asked.queue).await?;
    let answers = transport.complete(&[Completion::new(Held::new(&asked.key, asked.lease), asked.result)]).await?;
    settle(session, &asked.queue, &asked.key, asked.lease, only(&answers)?, true)
}

async fn fail(session: &Session, asked: act::Fail) -> Reply {
    let transport = session.service().transport(&asked.queue).await?;
    let mut failure = Failure::new(asked.message);
    if let Some(category) = asked.category {
        failure = failure.category(category);
    }
    failure.retryable = asked.retryable.unwrap_or(true);
    failure.retry_in = asked.retry_in_seconds.map(seconds).transpose()?;
    let answer = transport.fail(&Held::new(&asked.key, asked.lease), &failure).await?;
    settle(session, &asked.queue, &asked.key, asked.lease, &answer, true)
}

async fn snooze(session: &Session, asked: act::Snooze) -> Reply {
    let transport = session.service().transport(&asked.queue).await?;
    if !(1.0..=2_592_000.0).contains(&asked.seconds) {
        return Err(Refusal::invalid("seconds is from 1 to 2592000 (30 days)."));
    }
    let answer = transport.snooze(&Held::new(&asked.key, asked.lease), seconds(asked.seconds)?).await?;
    settle(session, &asked.queue, &asked.key, asked.lease, &answer, true)
}

async fn release(session: &Session, asked: act::Held) -> Reply {
    let transport = session.service().transport(&asked.queue).await?;
    let answers = transport.release(&[Held::new(&asked.key, asked.lease)]).await?;
    settle(session, &asked.queue, &asked.key, asked.lease, only(&answers)?, true)
}

async fn explain(session: &Session, asked: act::Explain) -> Reply {
    let service = session.service();
    let transport = service.transport(&asked.queue).await?;
    let reply = transport.explain(&asked.key, service.settings().owner.as_deref()).await?;
    let Some(mut reply) = reply else { return Err(refused(Outcome::Gone, &asked.queue, &asked.key)) };
    // Agents choose their own ids, and the sentence repeats them.
    for field in ["agent", "reason"] {
        if let Some(text) = reply[field].as_str() {
            reply[field] = sentence(text).into();
        }
    }
    let says = format!("Item {}: {}.", asked.key, reply["reason"].as_str().unwrap_or("nothing is known"));
    Ok(ToolReply { says, value: reply })
}

async fn cancel(session: &Session, asked: act::Cancel) -> Reply {
    if !(1..=20).contains(&asked.keys.len()) {
        return Err(Refusal::invalid("keys names 1 to 20 items."));
    }
    let transport = session.service().transport(&asked.queue).await?;
    let keys: Vec<&str> = asked.keys.iter().map(String::as_str).collect();
    let reason = format!("{} (by an assistant, {})", asked.reason, session.agent());
    let answers = transport.cancel(&keys, Some(&reason)).await?;
    tracing::info!(queue = asked.queue, ?keys, agent = session.agent(), "an assistant cancelled");
    let items: Vec<Value> =
        answers.iter().map(|one| json!({"key": one.key, "outcome": one.outcome.as_str(), "status": one.status})).collect();
    let says: Vec<String> = answers.iter().map(|one| format!("{}: {}", one.key, one.outcome.as_str())).collect();
    Ok(ToolReply { says: format!("Cancel in {}: {}.", asked.queue, says.join(", ")), value: json!({"items": items}) })
}

async fn link_contact(session: &Session, asked: act::LinkContact) -> Reply {
    let link = Link { activity: &asked.activity, contact: asked.contact, backfill: asked.backfill, remember: asked.remember };
    let linked = session.service().backend().link_contact(&link).await?;
    if linked.first().is_none_or(|(_, outcome)| outcome == "gone") {
        return Err(refused(Outcome::Gone, "activities", &asked.activity));
    }
    tracing::info!(activity = asked.activity, contact = asked.contact, agent = session.agent(), "an assistant linked");
    let activities: Vec<Value> = linked.iter().map(|(key, outcome)| json!({"key": key, "outcome": outcome})).collect();
    Ok(ToolReply {
        says: format!("Linked {} to contact {}.", count(linked.len(), "activity"), asked.contact),
        value: json!({"activities": activities}),
    })
}

/// The result of an act on a held item. If the act was not done, that is a refusal and the hold ends.
fn settle(session: &Session, queue: &str, key: &str, lease: i64, answer: &Answer, ends: bool) -> Reply {
    let refusal = Refusal::of(answer.outcome, queue, key);
    if ends || refusal.is_some() {
        session.service().renewal().let_go(queue, key, lease);
    } else {
        session.service().renewal().heard_lease(queue, key, lease);
    }
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let status = answer.status.as_deref().unwrap_or("gone");
    let again = if answer.outcome == Outcome::Already { " It had been done before; nothing changed." } else { "" };
    let says = format!("Item {key} of {queue} is now {status}.{again}");
    Ok(ToolReply { says, value: json!({"queue": queue, "key": key, "outcome": answer.outcome.as_str(), "status": answer.status}) })
}

fn refused(outcome: Outcome, queue: &str, key: &str) -> Refusal {
    Refusal::of(outcome, queue, &word(key)).unwrap_or_else(|| Refusal::new("failed", "It did not work."))
}

fn only(answers: &[Answer]) -> Result<&Answer, Refusal> {
    answers.first().ok_or_else(|| Refusal::new("failed", "The queue gave no answer. Look with `explain` before you try again."))
}

fn seconds(given: f64) -> Result<Duration, Refusal> {
    Duration::try_from_secs_f64(given).map_err(|_| Refusal::invalid("a number of seconds is not negative, and not beyond all measure."))
}

fn count(n: usize, one: &str) -> String {
    match (n, one) {
        (1, one) => format!("1 {one}"),
        (n, "activity") => format!("{n} activities"),
        (n, one) => format!("{n} {one}s"),
    }
}
