//! Who is calling: a signed-in user with an active session, or the service key.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use gleaner_http::Role;
use gleaner_http::database::Error;
use serde_json::Value;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Auth;
use super::error::{Failure, Result};
use super::project_key::Key;
use crate::access::is_opaque;

/// A user whose token verified, whose session has not ended and who is not banned.
#[derive(Debug)]
pub(super) struct SignedIn {
    pub user_id: Uuid,
    pub session_id: Option<Uuid>,
    /// As `/user` returns it.
    pub user: Value,
}

/// A caller with the service key.
#[derive(Debug)]
pub(super) struct Administrator;

fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

impl FromRequestParts<Auth> for SignedIn {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, auth: &Auth) -> Result<Self> {
        let token = bearer(parts).ok_or_else(|| Failure::new(401, "no_authorization", "This endpoint requires a valid Bearer token"))?;
        let claims = auth.0.signer.verify(token).map_err(Failure::bad_jwt)?;
        let user_id = claims.sub.ok_or_else(|| Failure::bad_jwt("invalid claim: missing sub claim"))?;
        let session_id = claims.session_id;
        let row = auth
            .row(
                "look for the session",
                "select gleaner.show_user($1), gleaner.find_ban($1) is not null,
                        $2 is null or exists (select from auth.sessions as s where s.id = $2 and s.user_id = $1)",
                &[(&user_id, Type::UUID), (&session_id, Type::UUID)],
            )
            .await?;
        let user = row
            .get::<_, Option<Value>>(0)
            .ok_or_else(|| Failure::new(403, "user_not_found", "User from sub claim in JWT does not exist"))?;
        if row.get(1) {
            return Err(Failure::banned());
        }
        if !row.get::<_, bool>(2) {
            return Err(Failure::no_session());
        }
        Ok(Self { user_id, session_id, user })
    }
}

impl FromRequestParts<Auth> for Administrator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, auth: &Auth) -> Result<Self> {
        let key = parts.extensions.get::<Key>().cloned();
        let role = match (bearer(parts), key) {
            // Without a user's token the role is that of the key.
            (None, Some(key)) => Some(key.role),
            (Some(token), Some(key)) if token == key.text => Some(key.role),
            (Some(token), _) if is_opaque(token) => auth.role_of_key(token).await?,
            (Some(token), _) => auth.0.signer.verify(token).map_err(Failure::bad_jwt).map(|claims| Some(claims.role))?,
            (None, None) => None,
        };
        match role {
            Some(Role::Service) => Ok(Self),
            _ => Err(Failure::new(403, "not_admin", "User not allowed")),
        }
    }
}

impl Auth {
    /// The single row of a statement, which is sent unnamed like all of them.
    pub(super) async fn row(
        &self,
        act: &'static str,
        sql: &str,
        params: &[(&(dyn tokio_postgres::types::ToSql + Sync), Type)],
    ) -> Result<tokio_postgres::Row> {
        let client = self.0.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let mut rows = client.query_typed(sql, params).await.map_err(Error::doing(act))?;
        Ok(rows.pop().ok_or_else(|| Error::Other(format!("{act}: no row")))?)
    }
}
