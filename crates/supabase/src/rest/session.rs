//! One request is one transaction, and in the common case one round trip: begin, the caller's settings, the statement and commit
//! are sent together. Statements are unnamed, so that they also work through a pooler in transaction mode.

use std::time::Duration;

use deadpool_postgres::{Object, PoolError};
use gleaner_http::WireError;
use gleaner_http::database::Pool;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::context::Context;
use super::sql::{Parameter, Statement};

/// The settings that identify the caller, in the order of evaluation. Whether a user was banned since the token was signed is
/// checked while we still have our own rights. A ban raises an error, and everything after it is skipped.
const SETTINGS: &str = "select gleaner.refuse_banned($8), pg_catalog.set_config('search_path', $1, true), pg_catalog.set_config('role', $2, true), \
    pg_catalog.set_config('request.jwt.claims', $3, true), pg_catalog.set_config('request.method', $4, true), \
    pg_catalog.set_config('request.path', $5, true), pg_catalog.set_config('request.headers', $6, true), \
    pg_catalog.set_config('statement_timeout', $7, true), pg_catalog.set_config('timezone', 'UTC', true)";

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
    let begin = if context.read_only { "begin read only" } else { "begin" };
    let Some(accept) = accept else {
        // Polled in this order and so sent in this order. After an error PostgreSQL skips what follows, and commit rolls back.
        let (begun, told, answered, ended) = tokio::join!(
            biased;
            client.batch_execute(begin),
            tell(&client, context),
            answer(&client, statement),
            client.batch_execute("commit"),
        );
        client.release();
        begun.map_err(refused)?;
        told.map_err(refused)?;
        let outcome = read(&answered.map_err(refused)?);
        // Deferred constraints fail here.
        ended.map_err(refused)?;
        return Ok(outcome);
    };
    let (begun, told, answered) = tokio::join!(biased; client.batch_execute(begin), tell(&client, context), answer(&client, statement));
    let checked =
        begun.and(told).and(answered).map_err(refused).map(|rows| read(&rows)).and_then(|outcome| accept(&outcome).map(|()| outcome));
    let end = if checked.is_ok() { "commit" } else { "rollback" };
    let ended = client.batch_execute(end).await;
    client.release();
    let outcome = checked?;
    ended.map_err(refused)?;
    Ok(outcome)
}

async fn tell(client: &Client, context: &Context) -> Result<Vec<Row>, tokio_postgres::Error> {
    let values = [
        &context.search_path,
        &context.role,
        &context.claims,
        &context.method,
        &context.path,
        &context.headers,
        &context.statement_timeout,
    ];
    let mut parameters = values.map(|value| (value as &(dyn ToSql + Sync), Type::TEXT)).to_vec();
    parameters.push((&context.person, Type::UUID));
    client.query_typed(SETTINGS, &parameters).await
}

async fn answer(client: &Client, statement: &Statement) -> Result<Vec<Row>, tokio_postgres::Error> {
    let parameters: Vec<(&(dyn ToSql + Sync), Type)> = statement
        .parameters
        .iter()
        .map(|parameter| match parameter {
            Parameter::Text(value) => (value as &(dyn ToSql + Sync), Type::TEXT),
            Parameter::List(values) => (values as &(dyn ToSql + Sync), Type::TEXT_ARRAY),
        })
        .collect();
    client.query_typed(&statement.sql, &parameters).await
}

/// Each of our statements returns one row of these four columns.
fn read(rows: &[Row]) -> Outcome {
    rows.first().map_or_else(Outcome::default, |row| Outcome {
        rows: row.get(0),
        shown: row.get(1),
        total: row.get(2),
        inserted: row.get(3),
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
