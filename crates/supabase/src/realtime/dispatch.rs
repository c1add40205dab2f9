//! Sends changes from the feed to the sockets: what changed, which subscribers it concerns, and which of them may see it.
//!
//! To callers under row-level security a row is shown as it is now, read with their own rights. The log says what it was when it
//! was written, and that may have been private. Versions that were replaced meanwhile are sent with the values that replaced them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use gleaner_http::database::Result;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::Heard;
use super::feed::pgoutput::Cell;
use super::feed::{Change, Commit, Kind, News, Table};
use super::hub::{Hub, Identity, Member};
use super::sight::Sight;

/// Commits whose visibility is checked together. While one check is running the next batch gathers, so that a burst costs few
/// statements.
const MOST_COMMITS: usize = 200;
/// A lock on the table or a slow policy delays every change behind it. After this time the subscribers concerned are sent an error
/// and read the table themselves.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// A larger row is sent without its large values.
const MOST_BYTES: usize = 1024 * 1024;
/// Values above this size are left out of such a row.
const LARGE_VALUE: usize = 64;

/// Runs as long as the feed does. It is one task, so that messages are sent in commit order.
pub(super) async fn run(hub: Arc<Hub>, sight: Sight, heard: Heard, mut feed: mpsc::Receiver<News>) {
    let mut news = Vec::new();
    while feed.recv_many(&mut news, MOST_COMMITS).await > 0 {
        let mut commits = Vec::new();
        ring(&heard, &news);
        for item in news.drain(..) {
            match item {
                News::Live { asks } => hub.set_live(Some(asks)),
                News::Commit(commit) => commits.push(commit),
                News::Missed { schema, table } => {
                    dispatch_commits(&hub, &sight, std::mem::take(&mut commits)).await;
                    hub.fail(&hub.followers(&schema, &table));
                }
                News::Gap => {
                    dispatch_commits(&hub, &sight, std::mem::take(&mut commits)).await;
                    hub.set_live(None);
                    hub.fail(&hub.all_followers());
                }
            }
        }
        dispatch_commits(&hub, &sight, commits).await;
    }
}

/// Calls `heard` once per table: a thousand changed rows need only one check.
fn ring(heard: &Heard, news: &[News]) {
    let commits = news.iter().filter_map(|item| if let News::Commit(commit) = item { Some(commit) } else { None });
    let written = commits.flat_map(|commit| &commit.changes).filter(|change| change.kind != Kind::Delete);
    let mut tables: HashMap<usize, (&Arc<Table>, bool)> = HashMap::new();
    for change in written {
        tables.entry(identity(&change.table)).or_insert((&change.table, false)).1 |= change.kind == Kind::Insert;
    }
    for (table, inserted) in tables.into_values() {
        heard(&table.schema, &table.name, inserted);
    }
}

/// One change for one member.
struct Delivery {
    change: usize,
    member: Arc<Member>,
    ids: Vec<u64>,
}

async fn dispatch_commits(hub: &Hub, sight: &Sight, commits: Vec<Commit>) {
    let mut followers: HashMap<usize, Vec<Arc<Member>>> = HashMap::new();
    let mut deliveries = Vec::new();
    let changes: Vec<(&Change, &Commit)> =
        commits.iter().flat_map(|commit| commit.changes.iter().map(move |change| (change, commit))).collect();
    for (at, (change, _)) in changes.iter().enumerate() {
        let table = &change.table;
        let members = followers.entry(identity(table)).or_insert_with(|| hub.followers(&table.schema, &table.name));
        deliveries.extend(members.iter().filter_map(|member| {
            let ids = member.wants(change);
            if ids.is_empty() {
                // Whether the member may still see the row will not be checked.
                member.shown.forget(key(change));
            }
            (!ids.is_empty()).then(|| Delivery { change: at, member: member.clone(), ids })
        }));
    }
    if deliveries.is_empty() {
        return;
    }
    let xids: Vec<u32> = commits.iter().map(|commit| commit.xid).collect();
    if let Err(error) = sight.settle(&xids).await {
        return give_up(hub, deliveries.iter(), &error);
    }
    // Callers with the same claims see the same rows, so one check serves all of them.
    let mut groups: HashMap<String, (Arc<Identity>, Vec<Delivery>)> = HashMap::new();
    for delivery in deliveries {
        let who = delivery.member.who();
        groups.entry(who.key.clone()).or_insert_with(|| (who, Vec::new())).1.push(delivery);
    }
    for (who, deliveries) in groups.into_values() {
        let described = tokio::time::timeout(READ_WITHIN, describe(sight, &who, &changes, &deliveries)).await;
        match described.unwrap_or_else(|_| Err(gleaner_http::database::Error::Other("the policies took too long to answer".into()))) {
            Ok(visible) => {
                for delivery in &deliveries {
                    deliver(delivery, changes[delivery.change].0, &visible[&delivery.change]);
                }
            }
            Err(error) => give_up(hub, deliveries.iter(), &error),
        }
    }
}

/// A change as a caller may see it.
enum Visible {
    /// As the log has it: the caller sees all rows.
    Logged(String),
    /// With the row's current values, because row-level security is about those. A filter must hold for them too.
    Now(String, Change),
    /// The key of a deleted row. Whether the caller could see the row cannot be checked any more, so it is for members that were shown it.
    Deleted(String),
    /// The caller may not see the row.
    Hidden,
}

fn deliver(delivery: &Delivery, change: &Change, visible: &Visible) {
    let member = &delivery.member;
    let send = |ids: &[u64], data: &str| {
        member.send("postgres_changes", &format!("{{\"ids\":{},\"data\":{data}}}", Value::from(ids.to_vec())));
    };
    match visible {
        Visible::Logged(data) => send(&delivery.ids, data),
        Visible::Now(data, now) => {
            if change.old.is_some() {
                member.shown.forget(key(change));
            }
            let (ids, row) = (member.wants(now), key_of(&now.table, now.row()));
            if ids.is_empty() {
                member.shown.forget(row);
            } else {
                member.shown.remember(row);
                send(&ids, data);
            }
        }
        Visible::Deleted(data) => {
            if member.shown.forget(key(change)) {
                send(&delivery.ids, data);
            }
        }
        Visible::Hidden => {
            member.shown.forget(key(change));
            if let Some(new) = &change.new {
                member.shown.forget(key_of(&change.table, new));
            }
        }
    }
}

/// Identifies the row as it was before the change.
fn key(change: &Change) -> u64 {
    key_of(&change.table, change.old.as_ref().or(change.new.as_ref()).map_or(&[][..], Vec::as_slice))
}

fn key_of(table: &Table, cells: &[Cell]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&table.schema, &table.name).hash(&mut hasher);
    for (at, _) in table.keys() {
        if let Some(Cell::Text(text)) = cells.get(at) {
            text.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Whether the callers may see the change cannot be checked now. They get an error, because dropping the change silently would be a
/// loss they cannot notice.
fn give_up<'a>(hub: &Hub, deliveries: impl Iterator<Item = &'a Delivery>, error: &gleaner_http::database::Error) {
    tracing::warn!(%error, "changes could not be sent; subscribers are asked to join again");
    let members: HashMap<u64, Arc<Member>> = deliveries.map(|delivery| (delivery.member.id, delivery.member.clone())).collect();
    hub.fail(&members.into_values().collect::<Vec<_>>());
}

/// Each change of these deliveries as this caller may see it.
async fn describe(
    sight: &Sight,
    who: &Identity,
    changes: &[(&Change, &Commit)],
    deliveries: &[Delivery],
) -> Result<HashMap<usize, Visible>> {
    let mut by_table: HashMap<usize, Vec<usize>> = HashMap::new();
    for delivery in deliveries {
        let list = by_table.entry(identity(&changes[delivery.change].0.table)).or_default();
        if list.last() != Some(&delivery.change) {
            list.push(delivery.change);
        }
    }
    let mut visible = HashMap::new();
    for list in by_table.into_values() {
        let mut list = list;
        list.sort_unstable();
        list.dedup();
        let table = changes[list[0]].0.table.clone();
        let right = sight.right(&who.caller, &table).await?;
        let readable = &right.columns;
        let kept: Vec<usize> = list.iter().copied().filter(|&at| changes[at].0.kind != Kind::Delete).collect();
        let rows: Vec<&[Cell]> = kept.iter().map(|&at| changes[at].0.row()).collect();
        if right.guarded {
            let seen = sight.read(&who.caller, &table, &rows, readable).await?;
            for (&at, seen) in kept.iter().zip(seen) {
                let (change, commit) = changes[at];
                visible.insert(
                    at,
                    seen.map_or(Visible::Hidden, |cells| {
                        let now = Change { new: Some(cells), ..change.clone() };
                        Visible::Now(data(&now, commit, readable, &Value::Null), now)
                    }),
                );
            }
            for &at in list.iter().filter(|&&at| changes[at].0.kind == Kind::Delete) {
                let (change, commit) = changes[at];
                visible.insert(at, Visible::Deleted(data(change, commit, readable, &Value::Null)));
            }
            continue;
        }
        let fill: Vec<&str> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(at, column)| readable.contains(&column.name) && rows.iter().any(|row| row.get(*at) == Some(&Cell::Unchanged)))
            .map(|(_, column)| column.name.as_str())
            .collect();
        let seen = sight.fill(&who.caller, &table, &rows, &fill).await?;
        for (&at, seen) in kept.iter().zip(seen) {
            let (change, commit) = changes[at];
            visible.insert(at, seen.map_or(Visible::Hidden, |filled| Visible::Logged(data(change, commit, readable, &filled))));
        }
        // Only the key of a deleted row is sent, and only to callers that may read the table's key columns.
        for &at in list.iter().filter(|&&at| changes[at].0.kind == Kind::Delete) {
            let (change, commit) = changes[at];
            let may = table.keys().all(|(_, column)| readable.contains(&column.name));
            visible.insert(at, if may { Visible::Logged(data(change, commit, readable, &Value::Null)) } else { Visible::Hidden });
        }
    }
    Ok(visible)
}

fn data(change: &Change, commit: &Commit, readable: &std::collections::HashSet<String>, filled: &Value) -> String {
    let table = &change.table;
    let mut data = Map::new();
    data.insert("schema".into(), json!(table.schema));
    data.insert("table".into(), json!(table.name));
    data.insert("type".into(), json!(change.kind.word()));
    data.insert("commit_timestamp".into(), json!(timestamp(commit.at_micros)));
    let columns = table.columns.iter().filter(|column| readable.contains(&column.name));
    data.insert("columns".into(), columns.map(|column| json!({"name": column.name, "type": column.type_name})).collect());
    let size: usize = change.row().iter().map(|cell| if let Cell::Text(text) = cell { text.len() } else { 0 }).sum();
    let most = if size > MOST_BYTES { LARGE_VALUE } else { usize::MAX };
    if let Some(new) = &change.new {
        data.insert("record".into(), Value::Object(row(table, new, readable, filled, most, |_| true)));
    }
    if change.kind != Kind::Insert {
        // An update that does not change the key does not repeat it. The new row has it.
        let old = change.old.as_ref().or(change.new.as_ref());
        let keys = old.map(|old| row(table, old, readable, filled, usize::MAX, |at| table.columns[at].is_key)).unwrap_or_default();
        data.insert("old_record".into(), Value::Object(keys));
    }
    data.insert("errors".into(), if most == usize::MAX { Value::Null } else { json!(["Error 413: Payload Too Large"]) });
    Value::Object(data).to_string()
}

fn row(
    table: &Table,
    cells: &[Cell],
    readable: &std::collections::HashSet<String>,
    filled: &Value,
    most: usize,
    wanted: impl Fn(usize) -> bool,
) -> Map<String, Value> {
    let mut row = Map::new();
    for (at, (column, cell)) in table.columns.iter().zip(cells).enumerate() {
        if !wanted(at) || !readable.contains(&column.name) {
            continue;
        }
        let value = match cell {
            Cell::Null => Value::Null,
            Cell::Unchanged => filled.get(&column.name).cloned().unwrap_or(Value::Null),
            Cell::Text(text) if text.len() > most => continue,
            Cell::Text(text) => column.shape.value(text),
        };
        row.insert(column.name.clone(), value);
    }
    row
}

/// All changes written while a table had the same description share that description.
fn identity(table: &Arc<Table>) -> usize {
    Arc::as_ptr(table).addr()
}

/// ISO 8601 in UTC, with milliseconds.
fn timestamp(micros: i64) -> String {
    chrono::DateTime::from_timestamp_micros(micros).unwrap_or_default().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn commit_times_are_written_in_utc() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(1_736_937_000_123_456), "2025-01-15T10:30:00.123Z");
    }
}
