//! The database login of `/rest/v1`. It may take on the roles of callers, and has no rights of its own, so that nothing can run with
//! more rights than its caller has.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use gleaner::{Pool, connect};
use gleaner_http::WireError;
use gleaner_supabase::access::Access;
use gleaner_supabase::rest::Login;
use serde_json::{Map, json};
use tokio::sync::OnceCell;
use tokio_postgres::types::Type;

/// How often another server, or another database of the same PostgreSQL, may change the same roles at the same moment.
const TRIES: usize = 5;

/// Whether the login is complete.
const COMPLETE: &str = "select has_function_privilege('gleaner.run_request(uuid, text[], text, text[], integer)', 'execute')
    and has_function_privilege('gleaner.refuse_banned(uuid)', 'execute')
    and pg_has_role('anon', 'member') and pg_has_role('authenticated', 'member') and pg_has_role('service_role', 'member')";

/// The login, made at first use: the database need not be reachable when the server starts.
#[derive(Debug)]
pub struct ApiLogin {
    url: String,
    /// The URL that the operator set for it.
    own_url: Option<String>,
    owner: Pool,
    password: String,
    size: usize,
    made: OnceCell<Pool>,
}

impl ApiLogin {
    /// `owner` connects to `url`, and is used to make the login. `own_url` replaces it.
    pub fn new(url: &str, own_url: Option<&str>, owner: Pool, access: &Access, size: usize) -> Arc<Self> {
        // Servers that share a database share the secret. Signed, so that the password does not tell it; expired, so that it is no token.
        let mut claims = Map::new();
        claims.insert("purpose".to_owned(), json!("database login"));
        claims.insert("exp".to_owned(), json!(1));
        let (url, own_url) = (url.to_owned(), own_url.map(str::to_owned));
        Arc::new(Self { url, own_url, owner, password: access.sign(&claims), size, made: OnceCell::new() })
    }

    async fn make(&self) -> Result<Pool, WireError> {
        if let Some(url) = &self.own_url {
            return gleaner::pool(url, self.size).map_err(|error| {
                tracing::error!(%error, "GLEANER_REST_DATABASE_URL cannot be used");
                WireError::database_away()
            });
        }
        let away = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "no connection to the database");
            WireError::database_away()
        };
        let owner = self.owner.get().await.map_err(|error| away(&error))?;
        match self.prepare(&owner).await {
            Ok(pool) => Ok(pool),
            Err(error) if error.is_transient() => Err(away(&error)),
            Err(error) => {
                tracing::warn!(
                    "/rest/v1 uses the server's own database login, which may do more than its callers: {error}. Set \
                     GLEANER_REST_DATABASE_URL to a login that may only take on their roles, or let the server's login create roles"
                );
                gleaner::pool(&self.url, self.size).map_err(|error| away(&error))
            }
        }
    }

    async fn prepare(&self, owner: &tokio_postgres::Client) -> gleaner::Result<Pool> {
        let doing = gleaner::Error::doing("make the login of /rest/v1");
        let named = "select 'gleaner_api_' || d.oid from pg_catalog.pg_database as d where d.datname = current_database()";
        let name: String = owner.query_typed(named, &[]).await.map_err(doing)?[0].get(0);
        let pool = connect::pool_as(&self.url, &name, &self.password, self.size)?;
        if is_complete(&pool).await.unwrap_or(false) {
            return Ok(pool);
        }
        let verifier = postgres_protocol::password::scram_sha_256(self.password.as_bytes());
        for tried in 1.. {
            let call = "select gleaner.prepare_api_login($1, $2)";
            match owner.query_typed(call, &[(&name, Type::TEXT), (&verifier, Type::TEXT)]).await {
                Ok(_) => break,
                // Two transactions that change one role end this way: tuple concurrently updated.
                Err(error) if tried < TRIES && error.code().is_some_and(|code| matches!(code.code(), "XX000" | "23505" | "42710")) => {
                    tokio::time::sleep(Duration::from_millis(20 * tried as u64)).await;
                }
                Err(error) => return Err(gleaner::Error::doing("make the login of /rest/v1")(error)),
            }
        }
        // Where the login cannot connect, for example because a pooler does not know it, the reason is the error.
        is_complete(&pool).await.map(|_| pool)
    }
}

async fn is_complete(pool: &Pool) -> gleaner::Result<bool> {
    let client = connect::checkout(pool).await?;
    let rows = client.query_typed(COMPLETE, &[]).await.map_err(gleaner::Error::doing("check the login of /rest/v1"))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

impl Login for ApiLogin {
    fn pool(&self) -> BoxFuture<'_, Result<Pool, WireError>> {
        async move { self.made.get_or_try_init(|| self.make()).await.cloned() }.boxed()
    }
}
