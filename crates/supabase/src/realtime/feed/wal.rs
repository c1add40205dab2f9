//! The feed by logical decoding.
//!
//! The slot is temporary: when this process or its connection ends, the server drops it, so no WAL is kept for a reader that is
//! gone. What was committed in between is missed, and [`News::Gap`] reports that.

use std::collections::HashMap;
use std::sync::Arc;

use gleaner_http::database::Pool;
use pgwire_replication::{PgWireError, ReplicationClient, ReplicationConfig, ReplicationEvent};
use tokio::sync::mpsc;
use tokio_postgres::types::Type;

use super::pgoutput::{self, Cell, Message, Relation};
use super::values::Shape;
use super::{Change, Column, Commit, Kind, MOST_BYTES, MOST_CHANGES, News, PUBLICATION, Table};

/// The difference between PostgreSQL's epoch (2000) and ours (1970).
const EPOCH_MICROS: i64 = 946_684_800_000_000;

#[derive(Debug, thiserror::Error)]
pub(crate) enum WalError {
    #[error("replication: {0}")]
    Replication(#[from] PgWireError),
    #[error(transparent)]
    Garbled(#[from] pgoutput::Garbled),
    #[error("look up types: {0}")]
    Types(String),
    #[error("a change of a table that was not described")]
    Unknown,
    #[error("{0}")]
    Unsuitable(String),
}

impl WalError {
    /// Whether the server answered and refused, rather than being unreachable.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Replication(PgWireError::Server(_) | PgWireError::Auth(_) | PgWireError::Protocol(_)) | Self::Unsuitable(_))
    }
}

/// Follows the log until the receiver is dropped or the stream ends. `is_live` is set once changes are being followed.
pub(crate) async fn follow(
    log: &Result<ReplicationConfig, String>,
    pool: &Pool,
    news: &mpsc::Sender<News>,
    is_live: &mut bool,
) -> Result<(), WalError> {
    let slot = format!("gleaner_{}", uuid::Uuid::new_v4().simple());
    let mut client = ReplicationClient::connect_gated(config(log, &slot)?).await?;
    client.simple_query(&format!("CREATE_REPLICATION_SLOT {slot} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT")).await?;
    client.start().await?;
    client.wait_started().await?;
    *is_live = true;
    if news.send(News::Live { asks: u64::MAX }).await.is_err() {
        return Ok(());
    }
    let mut tables: HashMap<u32, Arc<Table>> = HashMap::new();
    let mut open: Option<Commit> = None;
    let mut waiting = 0;
    while let Some(event) = tokio::select! {
        event = client.recv() => event?,
        () = news.closed() => return Ok(()),
    } {
        match event {
            ReplicationEvent::Begin { xid, commit_time_micros, .. } => {
                waiting = 0;
                open = Some(Commit { xid, at_micros: commit_time_micros + EPOCH_MICROS, changes: Vec::new() });
            }
            ReplicationEvent::XLogData { data, .. } => {
                let message = pgoutput::decode(data)?;
                if let Message::Relation(relation) = message {
                    tables.insert(relation.id, Arc::new(describe(pool, relation).await?));
                } else if let (Some(commit), Some(change)) = (&mut open, change(&tables, message)?) {
                    waiting += change.row().iter().map(|cell| if let Cell::Text(text) = cell { text.len() } else { 0 }).sum::<usize>();
                    commit.changes.push(change);
                    // The whole transaction is committed by the time the log is sent, so a large one can be sent in parts and is
                    // never held in memory as a whole.
                    if commit.changes.len() >= MOST_CHANGES || waiting >= MOST_BYTES {
                        waiting = 0;
                        let part = Commit { changes: std::mem::take(&mut commit.changes), ..*commit };
                        if news.send(News::Commit(part)).await.is_err() {
                            return Ok(());
                        }
                    }
                }
            }
            ReplicationEvent::Commit { end_lsn, .. } => {
                if let Some(commit) = open.take().filter(|commit| !commit.changes.is_empty())
                    && news.send(News::Commit(commit)).await.is_err()
                {
                    return Ok(());
                }
                client.update_applied_lsn(end_lsn);
            }
            // Between transactions everything so far has been sent. Acknowledging it lets the server recycle its log.
            ReplicationEvent::KeepAlive { wal_end, .. } if open.is_none() => client.update_applied_lsn(wal_end),
            _ => {}
        }
    }
    Err(WalError::Unsuitable("the server ended the stream".into()))
}

fn change(tables: &HashMap<u32, Arc<Table>>, message: Message) -> Result<Option<Change>, WalError> {
    let table = |id| tables.get(&id).cloned().ok_or(WalError::Unknown);
    Ok(Some(match message {
        Message::Insert { relation, new } => Change { table: table(relation)?, kind: Kind::Insert, new: Some(new), old: None },
        Message::Update { relation, old, new } => Change { table: table(relation)?, kind: Kind::Update, new: Some(new), old },
        Message::Delete { relation, old } => Change { table: table(relation)?, kind: Kind::Delete, new: None, old: Some(old) },
        Message::Relation(_) | Message::Other => return Ok(None),
    }))
}

/// The log names types by number. The catalogue has their names.
async fn describe(pool: &Pool, relation: Relation) -> Result<Table, WalError> {
    let failed = |error: &dyn std::fmt::Display| WalError::Types(error.to_string());
    let client = pool.get().await.map_err(|error| failed(&error))?;
    let ids: Vec<u32> = relation.columns.iter().map(|column| column.type_id).collect();
    let rows = client
        .query_typed(
            "select t.oid, t.typname::text, format('%I.%I', n.nspname, t.typname), coalesce(b.typname, t.typname)::text
             from pg_type as t
             join pg_namespace as n on n.oid = t.typnamespace
             left join pg_type as b on b.oid = nullif(t.typbasetype, 0)
             where t.oid = any ($1)",
            &[(&ids, Type::OID_ARRAY)],
        )
        .await
        .map_err(|error| failed(&error))?;
    let types: HashMap<u32, (String, String, String)> = rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2), row.get(3)))).collect();
    let columns = relation.columns.into_iter().map(|column| {
        let (type_name, sql_type, base) =
            types.get(&column.type_id).cloned().unwrap_or_else(|| ("text".into(), "pg_catalog.text".into(), "text".into()));
        Column { name: column.name, shape: Shape::of(&base), type_name, sql_type, is_key: column.is_key }
    });
    Ok(Table { columns: columns.collect(), schema: relation.schema, name: relation.name })
}

/// The feed's connection to the log.
fn config(log: &Result<ReplicationConfig, String>, slot: &str) -> Result<ReplicationConfig, WalError> {
    let mut config = log.clone().map_err(WalError::Unsuitable)?;
    config.slot = slot.to_owned();
    config.publication = PUBLICATION.into();
    // The text forms that `values` parses.
    Ok(config.with_options("-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=1"))
}
