//! Users as an operator manages them: added, listed, changed, invited. The command line calls this.

mod links;

use gleaner_http::database::{Error, Pool, Result};
use serde_json::Value;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::error::Failure;
use super::password::{Busy, Hasher, Password};
use super::strength;
use super::user::address;

pub(in crate::auth) use links::issue_code;
pub use links::{LinkKind, invite, issue, reset};

/// The administrator created at the first start, where the operator named no other.
pub const FIRST: &str = "admin@localhost";

/// Shown once, at the first start.
#[derive(Debug)]
pub struct Credentials {
    pub email: String,
    pub password: Password,
}

/// What went wrong, in a message for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    #[error("{0}")]
    Refused(String),
    #[error("there is no user {0}; `gleaner users list` lists them")]
    Unknown(String),
    #[error("{0} is a user already")]
    Taken(String),
    #[error("users of this database are kept by its own auth service (Supabase); add them there")]
    Elsewhere,
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure.message().to_owned())
    }
}

/// Adds an administrator with a random password if there is no user yet. Returns `None` otherwise, and where users are managed
/// elsewhere. Safe to call at every start, and by several servers at once.
pub async fn first_administrator(pool: &Pool) -> Result<Option<Credentials>, Trouble> {
    let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    add_first_administrator(&**client).await
}

/// The same on the caller's connection.
pub async fn add_first_administrator(client: &impl GenericClient) -> Result<Option<Credentials>, Trouble> {
    // A plain query first: hashing takes a moment, and nearly every start finds a user.
    let look = "select not exists (select from auth.users)";
    if !serves(client).await? || !client.query_typed(look, &[]).await.map_err(Error::doing("look for users"))?[0].get::<_, bool>(0) {
        return Ok(None);
    }
    let password = Password::random();
    let hash = Hasher::new().hash(password.clone()).await?;
    let made = client
        .query_typed("select gleaner.add_first_administrator($1, $2)", &[(&FIRST, Type::TEXT), (&hash, Type::TEXT)])
        .await
        .map_err(Error::doing("add the first administrator"))?;
    Ok(made[0].get::<_, bool>(0).then(|| Credentials { email: FIRST.to_owned(), password }))
}

async fn serves(client: &impl GenericClient) -> Result<bool, Trouble> {
    let rows = client.query_typed("select gleaner.serves_auth()", &[]).await.map_err(Error::doing("ask whose the users are"))?;
    Ok(rows[0].get(0))
}

async fn must_serve(client: &impl GenericClient) -> Result<(), Trouble> {
    if serves(client).await? { Ok(()) } else { Err(Trouble::Elsewhere) }
}

/// Checks the strength of a password for that address and hashes it.
async fn hash(password: Password, email: &str) -> Result<String, Trouble> {
    strength::judge(&password, email, &strength::Policy::default())?;
    Ok(Hasher::new().hash(password).await?)
}

/// A user that was added.
#[derive(Debug)]
pub struct Added {
    pub id: Uuid,
    pub email: String,
    /// Its row among the owners of work.
    pub sales_id: Option<i64>,
}

/// Adds a user and its owner's row, or links the row that has this address. Both happen or neither.
pub async fn add(client: &impl GenericClient, email: &str, password: Option<Password>, administrator: bool) -> Result<Added, Trouble> {
    must_serve(client).await?;
    let email = address(email)?;
    let hash = match password {
        Some(password) => Some(hash(password, &email).await?),
        None => None,
    };
    let rows = client
        .query_typed(
            "select gleaner.add_user($1, $2, null, null, true, $3, true)",
            &[(&email, Type::TEXT), (&hash, Type::TEXT), (&administrator, Type::BOOL)],
        )
        .await
        .map_err(Error::doing("add the user"))?;
    let Some(id) = rows[0].get::<_, Option<Uuid>>(0) else { return Err(Trouble::Taken(email)) };
    let rows = client
        .query_typed("select id::bigint from public.sales where user_id = $1", &[(&id, Type::UUID)])
        .await
        .map_err(Error::doing("look for the owner's row"))?;
    Ok(Added { id, email, sales_id: rows.first().map(|row| row.get(0)) })
}

/// Every user: id, email, administrator, state, sales_id, sessions, and when it was last active.
pub async fn list(client: &impl GenericClient) -> Result<Vec<Value>, Trouble> {
    must_serve(client).await?;
    let rows = client
        .query_typed(
            "select jsonb_build_object(
                        'id', u.id, 'email', u.email, 'sales_id', s.id, 'administrator', coalesce(s.administrator, false),
                        'state', case when s.disabled then 'disabled' when u.banned_until > now() then 'banned'
                                      when u.encrypted_password is null then 'invited' when u.email_confirmed_at is null then 'unconfirmed'
                                      else 'active' end,
                        'sessions', (select count(*) from auth.sessions as n where n.user_id = u.id),
                        'created_at', u.created_at, 'last_sign_in_at', u.last_sign_in_at,
                        'signed_in_seconds_ago', extract(epoch from now() - u.last_sign_in_at))
             from auth.users as u left join public.sales as s on s.user_id = u.id
             order by u.email",
            &[],
        )
        .await
        .map_err(Error::doing("list the users"))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Sets a password. Every session of the user ends.
pub async fn set_password(client: &impl GenericClient, email: &str, password: Password) -> Result<(), Trouble> {
    let (id, email) = find(client, email).await?;
    let hash = hash(password, &email).await?;
    change(client, id, &serde_json::json!({"password": hash, "email_confirm": true})).await
}

/// The user with that address.
pub async fn find(client: &impl GenericClient, email: &str) -> Result<(Uuid, String), Trouble> {
    must_serve(client).await?;
    let email = address(email)?;
    let rows = client
        .query_typed("select id from auth.users where email = $1", &[(&email, Type::TEXT)])
        .await
        .map_err(Error::doing("find the user"))?;
    match rows.first() {
        Some(row) => Ok((row.get(0), email)),
        None => Err(Trouble::Unknown(email)),
    }
}

/// Changes what `gleaner.change_user` takes: a password, a ban, a confirmed address.
pub async fn change(client: &impl GenericClient, user: Uuid, changes: &Value) -> Result<(), Trouble> {
    client
        .query_typed("select gleaner.change_user($1, $2, null)", &[(&user, Type::UUID), (changes, Type::JSONB)])
        .await
        .map_err(Error::doing("change the user"))?;
    Ok(())
}
