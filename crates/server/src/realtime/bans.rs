//! Whoever may not come in any more does not stay in either.
//!
//! Rows are safe from the moment of the ban: each look at them asks (`access::begin`). This closes the socket, and with it
//! what needs no look: broadcasts, bells, and the keys of rows that are gone.

use std::sync::Arc;
use std::time::Duration;

use gleaner::{Error, Pool, Result};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::hub::Hub;
use crate::access::Caller;
use crate::queues::Queues;

/// What `gleaner.change_user` rings when somebody is banned.
const BELL: &str = "auth.users";
/// A bell may go unheard, and a plain update of `sales` rings none. One statement for everybody, and none while nobody is there.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Closes the sockets of banned people, for as long as it runs.
pub async fn watch(hub: Arc<Hub>, pool: Pool, queues: Queues) {
    let mut heard = 0;
    loop {
        tokio::select! {
            rings = queues.rung(BELL, heard) => heard = rings,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let people = hub.people();
        match banned(&pool, &people.keys().copied().collect::<Vec<_>>()).await {
            Ok(banned) => {
                for member in banned.iter().filter_map(|person| people.get(person)).flatten() {
                    member.out.cut_off("a subscriber was banned");
                }
            }
            Err(error) => tracing::debug!(%error, "who was banned could not be asked; the next look will"),
        }
    }
}

/// Whether somebody who wants to join is banned. Unknown while the database is away, and then the next look finds out.
pub async fn is_banned(pool: &Pool, caller: &Caller) -> bool {
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
