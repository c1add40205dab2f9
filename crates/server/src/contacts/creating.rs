//! Contacts made of unknown senders.

use gleaner::{Error, Result};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// What became of the sender of one activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    pub activity: Uuid,
    /// None where several contacts fit by now, or the table refused a new one.
    pub contact: Option<i64>,
    /// False when the sender was known by now: somebody else's message made the contact.
    pub fresh: bool,
}

/// Makes contacts of the unknown senders of these activities, for channels that want it, and links them. Right after the
/// commit that stored them and never within it: a CRM's own triggers on contacts may do anything.
pub async fn create(client: &impl GenericClient, activities: &[Uuid]) -> Result<Vec<Created>> {
    let rows = client
        .query_typed("select id, contact_id, outcome from gleaner.create_contacts($1)", &[(&activities, Type::UUID_ARRAY)])
        .await
        .map_err(Error::doing("create contacts"))?;
    Ok(rows.iter().map(|row| Created { activity: row.get(0), contact: row.get(1), fresh: row.get::<_, &str>(2) == "created" }).collect())
}
