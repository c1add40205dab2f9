//! A person's decision about which contact an activity came from.

use gleaner_http::database::{Error, Result};
use serde::Serialize;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};
use utoipa::ToSchema;
use uuid::Uuid;

/// What a link does besides the one activity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// Also links every other unmatched activity of the same sender.
    pub backfill: bool,
    /// Also adds the sender's address to the contact.
    pub remember: bool,
}

/// The result for one activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LinkResult)]
pub struct Answer {
    pub id: Uuid,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LinkOutcome)]
pub enum Outcome {
    Done,
    /// Nothing to change.
    Already,
    /// The activity does not exist, or the caller may not see it.
    Gone,
}

/// Links an activity to a contact. The first answer is for the activity itself. Raises `GL003` for a contact that does not
/// exist.
pub async fn link(client: &impl GenericClient, activity: Uuid, contact: i64, link: Link) -> Result<Vec<Answer>> {
    let rows = client
        .query_typed(
            "select id, outcome from gleaner.link_activity($1, $2, $3, $4)",
            &[(&activity, Type::UUID), (&contact, Type::INT8), (&link.backfill, Type::BOOL), (&link.remember, Type::BOOL)],
        )
        .await
        .map_err(Error::doing("link the activity"))?;
    Ok(rows.iter().map(answer).collect())
}

/// Removes the link between an activity and its contact.
pub async fn unlink(client: &impl GenericClient, activity: Uuid) -> Result<Answer> {
    let row = client
        .query_typed("select id, outcome from gleaner.unlink_activity($1)", &[(&activity, Type::UUID)])
        .await
        .map_err(Error::doing("unlink the activity"))?;
    Ok(answer(&row[0]))
}

fn answer(row: &Row) -> Answer {
    let outcome = match row.get(1) {
        "done" => Outcome::Done,
        "already" => Outcome::Already,
        _ => Outcome::Gone,
    };
    Answer { id: row.get(0), outcome }
}
