//! Parses what a join asks for, and adds the member.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use gleaner_http::Caller;
use serde_json::{Value, json};

use super::feed::Kind;
use super::feed::values::Shape;
use super::filter::{Condition, Operator};
use super::frame::{Frame, Version, encode};
use super::hub::{Binding, Identity, Member};
use super::outbox::Outbox;
use super::tables::About;
use super::{Holder, Realtime, bans, filter};

/// A client waits ten seconds for its reply. The feed gets most of that time to start.
const FEED_WITHIN: Duration = Duration::from_secs(8);
/// A member's names and filters are kept in memory as long as it is connected, so their length is limited.
const LONGEST_NAME: usize = 1024;
const LONGEST_FILTER: usize = 16 * 1024;
/// The most bindings of one join, the tables they may name, and the conditions of all their filters.
const MOST_BINDINGS: usize = 100;
const MOST_TABLES: usize = 20;
const MOST_CONDITIONS: usize = 100;

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
    if config.get("private") == Some(&Value::Bool(true)) {
        let name = frame.topic.strip_prefix("realtime:").unwrap_or_default();
        return refuse(format!("Unauthorized: private channels are not supported: {name}"));
    }
    let holder = match frame.payload.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty()) {
        Some(token) => match (realtime.verify)(token.to_owned()).await {
            Ok(caller) => Holder { token: token.to_owned(), caller },
            Err(refused) => return refuse(format!("InvalidJWTToken: {}", refused.message)),
        },
        None => connection.clone(),
    };
    if bans::is_banned(realtime.tables.pool(), &holder.caller).await {
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
    let (bindings, problem) = match bind(realtime, &holder.caller, &asked).await {
        Ok(bound) => bound,
        Err(reason) => return refuse(reason),
    };
    let echo: Vec<Value> = asked.iter().zip(&bindings).map(|(entry, (id, _))| with_id(entry, *id)).collect();
    let mut member = Member::new(frame.topic.clone(), frame.join_ref.clone(), version, out.clone(), Identity::new(holder.caller.clone()));
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
        member.send("presence_state", &realtime.hub.presence(&member.topic).to_string());
    }
    if !asked.is_empty() {
        let name = member.topic.strip_prefix("realtime:").unwrap_or_default();
        let (status, message) = match problem {
            None => ("ok", "Subscribed to PostgreSQL".to_owned()),
            Some(reason) => ("error", format!("Unable to subscribe to changes with given parameters. {reason}")),
        };
        let system = json!({"extension": "postgres_changes", "status": status, "message": message, "channel": name});
        member.send("system", &system.to_string());
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

/// What one entry of a join asks for, before the database is asked.
struct BindingRequest {
    id: u64,
    kind: Option<Kind>,
    schema: String,
    table: Option<String>,
    filter: Vec<(String, Operator, Vec<String>)>,
}

/// Each entry's id and, where it can be followed, its binding; and the first reason why one cannot.
type Bound = (Vec<(u64, Option<Binding>)>, Option<String>);

/// The bindings of a join. All it asks of the database is a cached statement for each table and one for all values of all filters,
/// and nothing about tables that the caller may not read. The error refuses the whole join.
async fn bind(realtime: &Realtime, caller: &Caller, asked: &[Value]) -> Result<Bound, String> {
    let wanted: Vec<(u64, Result<BindingRequest, String>)> = asked
        .iter()
        .map(|entry| {
            let id = realtime.hub.next_id();
            (id, binding_request(id, entry))
        })
        .collect();
    let good = || wanted.iter().filter_map(|(_, wanted)| wanted.as_ref().ok());
    if good().map(|wanted| wanted.filter.len()).sum::<usize>() > MOST_CONDITIONS {
        return Err(format!("a channel takes at most {MOST_CONDITIONS} conditions"));
    }
    let mut tables: HashMap<(&str, &str), Result<Arc<About>, String>> = HashMap::new();
    for wanted in good() {
        let Some(table) = &wanted.table else { continue };
        let key = (wanted.schema.as_str(), table.as_str());
        if tables.len() >= MOST_TABLES && !tables.contains_key(&key) {
            return Err(format!("a channel follows at most {MOST_TABLES} tables"));
        }
        if let Entry::Vacant(place) = tables.entry(key) {
            let about = realtime.tables.about(key.0, key.1).await;
            place.insert(about.and_then(|about| follows(realtime, &about, key.0, key.1).map(|()| about)));
        }
    }
    let mut bound: Vec<(u64, Result<Binding, String>)> = wanted
        .iter()
        .map(|(id, wanted)| {
            let binding = wanted.as_ref().map_err(Clone::clone).and_then(|wanted| {
                let about = wanted.table.as_ref().map(|table| tables[&(wanted.schema.as_str(), table.as_str())].clone()).transpose()?;
                unchecked(wanted, about.as_deref())
            });
            (*id, binding)
        })
        .collect();
    // Values are compared in the form that the database writes them in.
    let readable: Vec<Option<Arc<About>>> = bound
        .iter()
        .map(|(_, binding)| {
            let binding = binding.as_ref().ok()?;
            let about = tables.get(&(binding.schema.as_str(), binding.table.as_deref()?))?.as_ref().ok()?;
            about.is_readable_by(caller).then(|| about.clone())
        })
        .collect();
    let lists: Vec<(&str, &Vec<String>)> = bound
        .iter()
        .zip(&readable)
        .filter_map(|((_, binding), about)| Some((binding.as_ref().ok()?, about.as_ref()?)))
        .flat_map(|(binding, about)| {
            binding.conditions.iter().map(move |condition| (about.columns[&condition.column].0.as_str(), &condition.values))
        })
        .collect();
    match realtime.tables.canonical(&lists).await {
        Ok(values) => {
            let mut values = values.into_iter();
            for ((_, binding), _) in bound.iter_mut().zip(&readable).filter(|(_, about)| about.is_some()) {
                for condition in binding.iter_mut().flat_map(|binding| &mut binding.conditions) {
                    condition.values = values.next().unwrap_or_default();
                }
            }
        }
        Err(reason) => {
            for (_, binding) in bound.iter_mut().filter(|(_, binding)| binding.as_ref().is_ok_and(|binding| !binding.conditions.is_empty()))
            {
                *binding = Err(reason.clone());
            }
        }
    }
    let problem = bound.iter().find_map(|(_, binding)| binding.as_ref().err().cloned());
    Ok((bound.into_iter().map(|(id, binding)| (id, binding.ok())).collect(), problem))
}

fn binding_request(id: u64, entry: &Value) -> Result<BindingRequest, String> {
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
    if schema.len() > LONGEST_NAME || table.as_ref().is_some_and(|table| table.len() > LONGEST_NAME) {
        return Err(format!("a name has at most {LONGEST_NAME} bytes"));
    }
    let filter = text("filter").unwrap_or_default();
    if filter.len() > LONGEST_FILTER {
        return Err(format!("a filter has at most {LONGEST_FILTER} bytes"));
    }
    if table.is_none() && !filter.is_empty() {
        return Err("a filter needs a table".into());
    }
    Ok(BindingRequest { id, kind, schema, table, filter: filter::parse(filter)? })
}

/// The binding with its values as the client wrote them.
fn unchecked(wanted: &BindingRequest, about: Option<&About>) -> Result<Binding, String> {
    let condition = |(column, operator, values): &(String, Operator, Vec<String>)| {
        let known = about.and_then(|about| about.columns.get(column));
        let (_, base) = known.ok_or_else(|| format!("invalid column for filter {column}"))?;
        Ok(Condition { column: column.clone(), operator: *operator, values: values.clone(), shape: Shape::of(base) })
    };
    let conditions = wanted.filter.iter().map(condition).collect::<Result<_, String>>()?;
    Ok(Binding { id: wanted.id, kind: wanted.kind, schema: wanted.schema.clone(), table: wanted.table.clone(), conditions })
}

/// A subscription to a table whose changes are never sent would wait forever.
fn follows(realtime: &Realtime, about: &About, schema: &str, table: &str) -> Result<(), String> {
    if !about.is_published {
        Err(format!("the table {schema}.{table} is not published; run: alter publication supabase_realtime add table {schema}.{table}"))
    } else if realtime.hub.is_by_triggers() && !about.has_triggers {
        Err(format!(
            "changes of {schema}.{table} cannot be followed without the server's log: it needs a primary key, no row filter in the \
             publication, and triggers that could be put on it; the server's log says why"
        ))
    } else {
        Ok(())
    }
}
