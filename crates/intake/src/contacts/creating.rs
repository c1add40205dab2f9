//! Creates contacts for unknown senders.

use gleaner_http::database::{Error, Result};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// The result for the sender of one activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    pub activity: Uuid,
    /// None if several contacts match by now, or if the table refused a new one.
    pub contact: Option<i64>,
    /// False when the sender was known by now, because another message had created the contact.
    pub fresh: bool,
}

/// Creates contacts for the unknown senders of these activities, on channels that are configured for it, and links them. It
/// runs right after the commit that stored the activities and never within it: a CRM's own triggers on contacts may do
/// anything.
pub async fn create(client: &impl GenericClient, activities: &[Uuid]) -> Result<Vec<Created>> {
    let rows = client
        .query_typed("select id, contact_id, outcome from gleaner.create_contacts($1)", &[(&activities, Type::UUID_ARRAY)])
        .await
        .map_err(Error::doing("create contacts"))?;
    Ok(rows.iter().map(|row| Created { activity: row.get(0), contact: row.get(1), fresh: row.get::<_, &str>(2) == "created" }).collect())
}
