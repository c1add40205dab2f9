//! `/v1/people` and `/v1/keys`: the team and the keys of programs, for administrators. What they do is in the audit.

mod keys;
mod people;

use axum::extract::FromRef;
use axum::http::StatusCode;
use deadpool_postgres::Client;
use gleaner::Pool;
use gleaner_http::{Authenticator, Caller, WireError, database, with_caller};
use serde_json::Value;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the handlers need. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Team {
    pool: Pool,
    authenticator: Authenticator,
    /// Where links lead.
    base: String,
}

impl FromRef<Team> for Authenticator {
    fn from_ref(team: &Team) -> Self {
        team.authenticator.clone()
    }
}

/// The routes, to be merged into the server's.
pub(crate) fn router(pool: Pool, authenticator: impl Into<Authenticator>, base: String) -> OpenApiRouter {
    OpenApiRouter::default()
        .routes(routes!(people::list))
        .routes(routes!(people::invite))
        .routes(routes!(people::reset))
        .routes(routes!(people::disable))
        .routes(routes!(people::enable))
        .routes(routes!(people::promote))
        .routes(routes!(keys::list, keys::add))
        .routes(routes!(keys::revoke))
        .with_state(Team { pool, authenticator: authenticator.into(), base })
}

impl Team {
    /// A connection with the server's own rights, for a caller that the database calls an administrator.
    async fn governed_by(&self, caller: &Caller) -> Result<Client, WireError> {
        let asked = with_caller(&self.pool, caller, |transaction| {
            Box::pin(async move {
                let rows = transaction.query_typed("select gleaner.me() ->> 'administrator'", &[]).await;
                let rows = rows.map_err(database::Error::doing("ask who is calling"))?;
                Ok::<_, database::Error>(rows[0].get::<_, Option<String>>(0).as_deref() == Some("true"))
            })
        });
        match asked.await {
            Ok(true) => self.pool.get().await.map_err(|error| refuse(&database::Error::Connect(error.to_string()))),
            Ok(false) => Err(WireError::new(StatusCode::FORBIDDEN, "42501", "only administrators may do this")),
            Err(error) => Err(refuse(&error)),
        }
    }
}

fn refuse(error: &database::Error) -> WireError {
    if error.is_transient() {
        return WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "the database cannot be reached; try again");
    }
    if error.code().is_some_and(|code| code.code() == "42501") {
        return WireError::new(StatusCode::FORBIDDEN, "42501", error.to_string());
    }
    tracing::error!(%error, "team: an act failed");
    WireError::internal()
}

/// Notes what an administrator did.
async fn note(client: &impl GenericClient, caller: &Caller, area: &str, key: &str, act: &str, detail: Value) -> Result<(), WireError> {
    let sql = "insert into gleaner.audit (queue, key, act, caller, detail) values ($1, $2, $3, $4, $5)";
    let who = who(caller);
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 5] =
        [(&area, Type::TEXT), (&key, Type::TEXT), (&act, Type::TEXT), (&who, Type::TEXT), (&detail, Type::JSONB)];
    let noted = client.query_typed(sql, &values).await.map_err(database::Error::doing("note what was done"));
    noted.map(drop).map_err(|error| refuse(&error))
}

/// The caller as the audit names it: user and sign-in, or the role.
pub(crate) fn who(caller: &Caller) -> String {
    let Caller::Token { role, claims } = caller else { return "role:server".to_owned() };
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    text("sub").map_or_else(|| format!("role:{}", role.name()), |user| format!("{user}/{}", text("session_id").unwrap_or_default()))
}
