//! One request is one transaction, and in the common case one round trip: begin, the statement and commit are sent together.
//! `gleaner.run_request` takes on the caller's role and runs the statement in one call, and runs nothing where the time limit shows
//! that the messages before it had no effect. The login has no rights of its own ([`Login`](super::Login)). Statements are unnamed,
//! so that they also work through a pooler in transaction mode.

use std::time::Duration;

use deadpool_postgres::{Object, PoolError};
use gleaner_http::WireError;
use gleaner_http::database::Pool;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::context::Context;
use super::sql::Statement;

const RUN: &str = "select rows, shown, total, inserted, status, headers from gleaner.run_request($1, $2, $3, $4, $5)";

/// The result of one of our statements.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The rows as JSON, joined by commas.
    pub rows: String,
    /// The number of these rows.
    pub shown: i64,
    /// The number of rows without limit and offset, if it was requested.
    pub total: Option<i64>,
    /// The number of rows that an upsert inserted, if it was requested.
    pub inserted: Option<i64>,
    /// What a function left in the settings `response.status` and `response.headers`.
    pub status: Option<String>,
    pub headers: Option<String>,
}

/// A connection, or an error if none is free in time.
pub(super) async fn connect(pool: &Pool, within: Duration) -> Result<Object, WireError> {
    match tokio::time::timeout(within, pool.get()).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(PoolError::Timeout(_))) | Err(_) => Err(WireError::no_connection_in_time()),
        Ok(Err(error)) => {
            tracing::warn!(%error, "no connection to the database");
            Err(WireError::database_away())
        }
    }
}

/// Runs `statement` on behalf of the caller. `accept` checks the outcome before the commit: if it refuses, everything is rolled
/// back. Without it there is no wait between statement and commit.
pub(super) async fn run(
    client: Object,
    context: &Context,
    statement: &Statement,
    accept: Option<impl FnOnce(&Outcome) -> Result<(), WireError>>,
) -> Result<Outcome, WireError> {
    let client = Guarded(Some(client));
    let refused = |error| WireError::from_postgres(&error, context.is_anonymous());
    // The time limit counts from the next message on, so it cannot be set by the call it limits.
    let read_only = if context.read_only { " read only" } else { "" };
    let begin = format!("begin{read_only}; set local statement_timeout = {}", context.statement_timeout.as_millis().min(i32::MAX as u128));
    let Some(accept) = accept else {
        // Polled in this order and so sent in this order. After an error PostgreSQL skips what follows, and commit rolls back.
        let (begun, answered, ended) = tokio::join!(
            biased;
            client.batch_execute(&begin),
            answer(&client, context, statement),
            client.batch_execute("commit"),
        );
        client.release();
        begun.map_err(refused)?;
        let outcome = read(&answered.map_err(refused)?);
        // Deferred constraints fail here.
        ended.map_err(refused)?;
        return Ok(outcome);
    };
    // Not sent together: without a transaction what is refused could not be rolled back.
    let begun = client.batch_execute(&begin).await;
    let answered = match begun {
        Ok(()) => answer(&client, context, statement).await,
        Err(error) => Err(error),
    };
    let checked = answered.map_err(refused).map(|rows| read(&rows)).and_then(|outcome| accept(&outcome).map(|()| outcome));
    let end = if checked.is_ok() { "commit" } else { "rollback" };
    let ended = client.batch_execute(end).await;
    client.release();
    let outcome = checked?;
    ended.map_err(refused)?;
    Ok(outcome)
}

async fn answer(client: &Client, context: &Context, statement: &Statement) -> Result<Vec<Row>, tokio_postgres::Error> {
    let settings = [
        Some(context.search_path.as_str()),
        Some(&context.role),
        Some(&context.claims),
        Some(&context.method),
        Some(&context.path),
        Some(&context.headers),
        Some(&context.timezone),
        context.read_only.then_some("on"),
    ];
    let limit = i32::try_from(context.statement_timeout.as_millis()).unwrap_or(i32::MAX);
    let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
        (&context.person, Type::UUID),
        (&settings.as_slice(), Type::TEXT_ARRAY),
        (&statement.sql, Type::TEXT),
        (&statement.parameters, Type::TEXT_ARRAY),
        (&limit, Type::INT4),
    ];
    client.query_typed(RUN, &parameters).await
}

/// Each of our statements returns one row.
fn read(rows: &[Row]) -> Outcome {
    rows.first().map_or_else(Outcome::default, |row| Outcome {
        rows: row.get::<_, Option<String>>(0).unwrap_or_default(),
        shown: row.get::<_, Option<i64>>(1).unwrap_or_default(),
        total: row.get(2),
        inserted: row.get(3),
        status: row.get::<_, Option<String>>(4).filter(|text| !text.is_empty()),
        headers: row.get::<_, Option<String>>(5).filter(|text| !text.is_empty()),
    })
}

/// A connection that goes back to the pool only when its transaction has ended. The client may disconnect at any moment, which
/// drops this future half-way. An open transaction must not return to the pool for the next caller.
struct Guarded(Option<Object>);

impl Guarded {
    fn release(mut self) {
        drop(self.0.take());
    }
}

impl std::ops::Deref for Guarded {
    type Target = Client;

    fn deref(&self) -> &Client {
        // Taken only by `release`, which consumes it, and by drop.
        self.0.as_ref().unwrap_or_else(|| unreachable!("the connection is there until released"))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}
