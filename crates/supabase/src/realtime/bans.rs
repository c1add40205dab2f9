//! Closes the sockets of banned users.
//!
//! Rows are protected from the moment of the ban, because each read of them checks it (`access::begin`). Closing the socket also
//! stops what needs no read: broadcasts, signals, and the keys of deleted rows.

use std::sync::Arc;
use std::time::Duration;

use gleaner_http::Caller;
use gleaner_http::database::{Error, Pool, Result};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Signals;
use super::hub::Hub;

/// The signal that `gleaner.change_user` raises when a user is banned.
const SIGNAL: &str = "auth.users";
/// A signal can be lost, and a plain update of `sales` raises none, so bans are also polled. One statement checks all callers, and
/// none is sent while no client is connected.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Closes the sockets of banned users, for as long as it runs.
pub(super) async fn watch(hub: Arc<Hub>, pool: Pool, signals: Arc<dyn Signals>) {
    let mut seen = 0;
    loop {
        tokio::select! {
            raised = signals.raised(SIGNAL, seen) => seen = raised,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let people = hub.people();
        match banned(&pool, &people.keys().copied().collect::<Vec<_>>()).await {
            Ok(banned) => {
                for member in banned.iter().filter_map(|person| people.get(person)).flatten() {
                    member.out.cut_off("a subscriber was banned");
                }
            }
            Err(error) => tracing::debug!(%error, "could not read who was banned; trying again later"),
        }
    }
}

/// Whether a caller that wants to join is banned. Returns false while the database is unreachable; the next poll finds out.
pub(super) async fn is_banned(pool: &Pool, caller: &Caller) -> bool {
    match caller.person() {
        Some(person) => banned(pool, &[person]).await.is_ok_and(|banned| !banned.is_empty()),
        None => false,
    }
}

async fn banned(pool: &Pool, people: &[Uuid]) -> Result<Vec<Uuid>> {
    if people.is_empty() {
        return Ok(Vec::new());
    }
    let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let rows = client
        .query_typed(
            "select p.id from unnest($1::uuid[]) as p (id)
             where has_table_privilege('auth.users', 'select') and gleaner.find_ban(p.id) is not null",
            &[(&people, Type::UUID_ARRAY)],
        )
        .await
        .map_err(Error::doing("ask who was banned"))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
