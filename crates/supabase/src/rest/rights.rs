//! Whether a caller may write, before its body is read. PostgreSQL decides again when the statement runs.

use gleaner_http::WireError;
use http::{Method, StatusCode};
use tokio_postgres::types::Type;

use super::context::Context;
use super::request::Resource;
use super::{Rest, session};

const OF_RELATION: &str = "select bool_or(has_table_privilege($3, c.oid, $4) or has_any_column_privilege($3, c.oid, $4))
    from pg_catalog.pg_class as c
    where c.relnamespace = to_regnamespace(quote_ident($1)) and c.relname = $2 and c.relkind in ('r', 'v', 'm', 'f', 'p')";
const OF_FUNCTION: &str = "select bool_or(has_function_privilege($3, p.oid, $4))
    from pg_catalog.pg_proc as p
    where p.pronamespace = to_regnamespace(quote_ident($1)) and p.proname = $2";

impl Rest {
    /// False for a name that does not exist: it is refused without its body. An error for a caller without the right, as PostgreSQL
    /// gives it.
    pub(super) async fn may_write(&self, context: &Context, schema: &str, resource: &Resource, method: &Method) -> Result<bool, WireError> {
        let (sql, name, right, what) = match resource {
            Resource::Relation(name) => {
                let right = if *method == Method::PATCH { "update" } else { "insert" };
                (OF_RELATION, name, right, "table")
            }
            Resource::Function(name) => (OF_FUNCTION, name, "execute", "function"),
        };
        let pool = self.callers().await?;
        let _share = self.shares.enter(context, self.settings.acquire_within).await?;
        let client = session::connect(&pool, self.settings.acquire_within).await?;
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] =
            [(&schema, Type::TEXT), (name, Type::TEXT), (&context.role, Type::TEXT), (&right, Type::TEXT)];
        let rows = client.query_typed(sql, &parameters).await;
        let rows = rows.map_err(|error| WireError::from_postgres(&error, context.is_anonymous()))?;
        match rows.first().and_then(|row| row.get::<_, Option<bool>>(0)) {
            Some(true) => return Ok(true),
            None => return Ok(false),
            Some(false) => {}
        }
        let status = if context.is_anonymous() { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
        Err(WireError::new(status, "42501", format!("permission denied for {what} {name}")))
    }
}
