//! Parses what a join asks for, and adds the member.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::feed::Kind;
use super::frame::{Frame, Version, encode};
use super::hub::{Binding, Known, Member};
use super::outbox::Outbox;
use super::{Holder, Realtime, bans, filter};

/// A client waits ten seconds for its reply. The feed gets most of that time to start.
const FEED_WITHIN: Duration = Duration::from_secs(8);
/// A member's names and filters are kept in memory as long as it is connected, so their length is limited.
const LONGEST_NAME: usize = 1024;
const LONGEST_FILTER: usize = 16 * 1024;
/// The most bindings of one join.
const MOST_BINDINGS: usize = 100;

/// Adds the sender of a `phx_join` as a member, or replies with the reason for the refusal.
pub(super) async fn join(
    realtime: &Realtime,
    frame: &Frame,
    version: Version,
    out: &Outbox,
    connection: &Holder,
) -> Option<(Arc<Member>, Holder)> {
    let refuse = |reason: String| {
        let payload = json!({"status": "error", "response": {"reason": reason}}).to_string();
        out.push(encode(version, frame.join_ref.as_deref(), frame.reference.as_deref(), &frame.topic, "phx_reply", &payload));
        None
    };
    if frame.topic.strip_prefix("realtime:").is_none_or(str::is_empty) {
        return refuse("unmatched topic".into());
    }
    if frame.topic.len() > LONGEST_NAME {
        return refuse(format!("the name of a channel has at most {LONGEST_NAME} bytes"));
    }
    let config = frame.payload.get("config").cloned().unwrap_or_default();
    let holder = match frame.payload.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty()) {
        Some(token) => match (realtime.verify)(token.to_owned()).await {
            Ok(caller) => Holder { token: token.to_owned(), caller },
            Err(refused) => return refuse(format!("InvalidJWTToken: {}", refused.message)),
        },
        None => connection.clone(),
    };
    if bans::is_banned(&realtime.pool, &holder.caller).await {
        return refuse("InvalidJWTToken: User is banned".into());
    }
    let asked: Vec<Value> = config.get("postgres_changes").and_then(Value::as_array).cloned().unwrap_or_default();
    if asked.len() > MOST_BINDINGS {
        return refuse(format!("a channel takes at most {MOST_BINDINGS} bindings"));
    }
    let signal = match &realtime.signals {
        Some(signals) => signals.asked(&config, &holder.caller).await,
        None => Ok(None),
    };
    let signal = match signal {
        Ok(signal) => signal,
        Err(reason) => return refuse(reason),
    };
    // The client retries. An ok now would promise changes while no feed is running.
    let not_running = || refuse("the change feed is not running; the server's log says why".into());
    let until = tokio::time::Instant::now() + FEED_WITHIN;
    if !asked.is_empty() && tokio::time::timeout_at(until, realtime.hub.ready()).await.is_err() {
        return not_running();
    }
    let mut problem = None;
    let mut bindings = Vec::with_capacity(asked.len());
    for entry in &asked {
        let id = realtime.hub.next_id();
        match binding(realtime, id, entry).await {
            Ok(binding) => bindings.push((id, Some(binding))),
            Err(reason) => {
                problem.get_or_insert(reason);
                bindings.push((id, None));
            }
        }
    }
    let echo: Vec<Value> = asked.iter().zip(&bindings).map(|(entry, (id, _))| with_id(entry, *id)).collect();
    let mut member = Member::new(frame.topic.clone(), frame.join_ref.clone(), version, out.clone(), Known::new(holder.caller.clone()));
    member.bindings = bindings.into_iter().filter_map(|(_, binding)| binding).collect();
    member.hears_itself = config.pointer("/broadcast/self") == Some(&Value::Bool(true));
    let key = config.pointer("/presence/key").and_then(Value::as_str).filter(|key| !key.is_empty() && key.len() <= LONGEST_NAME);
    member.presence_key = key.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
    let mut response = json!({"postgres_changes": echo});
    if let Some(signal) = &signal {
        response[signal.reply_key] = signal.payload.clone();
    }
    member.signal = signal;
    let reply = json!({"status": "ok", "response": response});
    let Ok(member) = tokio::time::timeout_at(until, enter(realtime, member, frame.reference.as_deref(), &reply)).await else {
        return not_running();
    };
    if config.pointer("/presence/enabled") == Some(&Value::Bool(true)) {
        member.tell("presence_state", &realtime.hub.presence(&member.topic).to_string());
    }
    if !asked.is_empty() {
        let name = member.topic.strip_prefix("realtime:").unwrap_or_default();
        let (status, message) = match problem {
            None => ("ok", "Subscribed to PostgreSQL".to_owned()),
            Some(reason) => ("error", format!("Unable to subscribe to changes with given parameters. {reason}")),
        };
        let system = json!({"extension": "postgres_changes", "status": status, "message": message, "channel": name});
        member.tell("system", &system.to_string());
    }
    Some((member, holder))
}

/// Adds the member as soon as everything it asks for is covered by the feed.
async fn enter(realtime: &Realtime, mut member: Member, reference: Option<&str>, reply: &Value) -> Arc<Member> {
    loop {
        match realtime.hub.join(member, |member| member.reply(reference, reply)) {
            Ok(member) => return member,
            Err(back) => member = *back,
        }
        realtime.hub.ready().await;
    }
}

/// Clients compare the entry they sent with the one they get back, so only the id is added.
fn with_id(entry: &Value, id: u64) -> Value {
    let mut echo = entry.clone();
    if let Some(object) = echo.as_object_mut() {
        object.insert("id".into(), json!(id));
    }
    echo
}

async fn binding(realtime: &Realtime, id: u64, entry: &Value) -> Result<Binding, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let kind = match text("event").unwrap_or("*") {
        "*" => None,
        "INSERT" => Some(Kind::Insert),
        "UPDATE" => Some(Kind::Update),
        "DELETE" => Some(Kind::Delete),
        other => return Err(format!("`{other}` is not among INSERT, UPDATE, DELETE, *")),
    };
    let schema = text("schema").unwrap_or("public").to_owned();
    let table = text("table").filter(|table| *table != "*").map(str::to_owned);
    let filter = text("filter").unwrap_or_default();
    if filter.len() > LONGEST_FILTER {
        return Err(format!("a filter has at most {LONGEST_FILTER} bytes"));
    }
    let conditions = match &table {
        Some(table) => {
            is_published(realtime, &schema, table).await?;
            filter::prepare(&realtime.pool, &schema, table, filter).await?
        }
        None if filter.is_empty() => Vec::new(),
        None => return Err("a filter needs a table".into()),
    };
    Ok(Binding { id, kind, schema, table, conditions })
}

/// A subscription to a table whose changes are never sent would wait forever.
async fn is_published(realtime: &Realtime, schema: &str, table: &str) -> Result<(), String> {
    use tokio_postgres::types::Type;
    let client = realtime.pool.get().await.map_err(|error| error.to_string())?;
    let rows = client
        .query_typed(
            "select exists (select from pg_publication_tables where pubname = $1 and schemaname = $2 and tablename = $3),
                    exists (
                        select from pg_trigger
                        where tgrelid = to_regclass(format('%I.%I', $2, $3)) and tgfoid = to_regprocedure('gleaner.note_change()'))",
            &[(&super::feed::PUBLICATION, Type::TEXT), (&schema, Type::TEXT), (&table, Type::TEXT)],
        )
        .await
        .map_err(|error| error.to_string())?;
    let (is_published, has_triggers) = rows.first().map_or((false, false), |row| (row.get(0), row.get(1)));
    if !is_published {
        Err(format!("the table {schema}.{table} is not published; run: alter publication supabase_realtime add table {schema}.{table}"))
    } else if realtime.hub.is_by_triggers() && !has_triggers {
        Err(format!(
            "changes of {schema}.{table} cannot be followed without the server's log: it needs a primary key, no row filter in the \
             publication, and triggers that could be put on it; the server's log says why"
        ))
    } else {
        Ok(())
    }
}
