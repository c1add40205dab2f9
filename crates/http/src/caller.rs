//! A caller, and a transaction that runs with the caller's identity.

use std::fmt;

use deadpool_postgres::{Client, Transaction};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::database::{Error, Pool, Result};

/// The roles of the wire contract. A token that names another role is refused: the server's own login may be a superuser,
/// and then it could switch to any role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Anon,
    Authenticated,
    Service,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::Anon => "anon",
            Self::Authenticated => "authenticated",
            Self::Service => "service_role",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::Anon, Self::Authenticated, Self::Service].into_iter().find(|role| role.name() == name)
    }
}

/// On whose behalf statements run.
#[derive(Clone, Default)]
pub enum Caller {
    /// The program itself, with the rights of its own login: the webhook endpoint, the sweeps, the command line.
    #[default]
    Ourselves,
    /// A caller with a token.
    Token { role: Role, claims: Map<String, Value> },
}

impl Caller {
    /// The person whose token it is. None for the keys of projects and programs.
    pub fn person(&self) -> Option<Uuid> {
        match self {
            Self::Token { claims, .. } => person(claims),
            Self::Ourselves => None,
        }
    }
}

/// The person these claims belong to. A program's key has an id of its own in the same claim, and is ended by revoking it.
pub fn person(claims: &Map<String, Value>) -> Option<Uuid> {
    if claims.contains_key("key_id") {
        return None;
    }
    claims.get("sub")?.as_str()?.parse().ok()
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ourselves => f.write_str("Ourselves"),
            // Claims contain addresses of people.
            Self::Token { role, .. } => f.debug_tuple("Token").field(role).finish(),
        }
    }
}

/// A transaction on behalf of the caller: row security decides what it sees and may change. A person who was banned since the
/// token was made is refused with 42501, in the same round trip.
pub async fn begin<'a>(client: &'a mut Client, caller: &Caller) -> Result<Transaction<'a>> {
    let transaction = client.transaction().await.map_err(Error::doing("begin"))?;
    if let Caller::Token { role, claims } = caller {
        let text = Value::Object(claims.clone()).to_string();
        // Both settings end with the transaction, so that the connection returns to the pool unchanged.
        transaction
            .query_typed(
                // The order matters: `refuse_banned` must run before the role is set, because the caller's role may not
                // call it.
                "select gleaner.refuse_banned($1), set_config('role', $2, true), set_config('request.jwt.claims', $3, true)",
                &[(&person(claims), Type::UUID), (&role.name(), Type::TEXT), (&text, Type::TEXT)],
            )
            .await
            .map_err(Error::doing("take on the caller's role"))?;
    }
    Ok(transaction)
}

/// Runs `act` on behalf of the caller, and commits when it succeeds.
pub async fn with_caller<T, E: From<Error>>(
    pool: &Pool,
    caller: &Caller,
    act: impl for<'t> FnOnce(&'t Transaction<'_>) -> BoxFuture<'t, Result<T, E>>,
) -> Result<T, E> {
    let mut client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let transaction = begin(&mut client, caller).await?;
    let value = act(&transaction).await?;
    transaction.commit().await.map_err(Error::doing("commit"))?;
    Ok(value)
}
