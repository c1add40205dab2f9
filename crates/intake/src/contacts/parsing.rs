//! Parses what people typed into contacts.

use gleaner_http::database::{Error, Result};
use gleaner_ingest::address::{email, phone};
use serde::Serialize;
use serde_json::json;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};

/// The number of addresses in one slice: a message that arrives right after an import waits for one slice, not for the
/// whole import.
const SLICE: i32 = 200;

/// An address of a contact as the database stores it, and its parsed form.
#[derive(Debug, Serialize)]
struct Parsed {
    contact_id: i64,
    kind: String,
    guess: String,
    written: String,
    /// None for text that is no address.
    address: Option<String>,
    loose: Option<String>,
}

/// Parses one slice of the contacts' addresses that wait for it, newest contacts first, and matches messages again that
/// arrived in the meantime. Returns the number of parsed addresses. Call it again until that is zero, or leave the rest to
/// the next call.
///
/// While nothing waits, this is a probe of an empty index. The webhook endpoint therefore calls it before each group of
/// requests, so that a contact saved a moment ago is matched to the message that follows.
pub async fn parse_pending(client: &impl GenericClient) -> Result<usize> {
    let waiting = client
        .query_typed("select contact_id, kind, guess, written, region from gleaner.pending_addresses($1)", &[(&SLICE, Type::INT4)])
        .await
        .map_err(Error::doing("list contacts' addresses to read"))?;
    if waiting.is_empty() {
        return Ok(0);
    }
    let parsed: Vec<Parsed> = waiting.iter().map(parse).collect();
    let read = client
        .query_typed("select gleaner.parse_addresses($1)", &[(&json!(parsed), Type::JSONB)])
        .await
        .map_err(Error::doing("store what contacts' addresses are"))?;
    // Fewer than listed if a contact is being edited, or parsed by another server, at this moment.
    Ok(usize::try_from(read[0].get::<_, i32>(0)).unwrap_or(0))
}

/// Parses everything that waits, slice by slice, each in a transaction of its own. For the sweep after an import.
pub async fn parse_all(client: &impl GenericClient) -> Result<usize> {
    let mut total = 0;
    loop {
        match parse_pending(client).await? {
            0 => return Ok(total),
            read => total += read,
        }
    }
}

fn parse(row: &Row) -> Parsed {
    let (contact_id, kind, guess, written, region): (i64, String, String, String, String) =
        (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4));
    let (address, loose) = if kind == "email" {
        let address = email::normalise(&written);
        let loose = address.as_deref().map(email::without_tag);
        (address, loose)
    } else {
        phone::read(&written, &region).map_or((None, None), |number| (Some(number.address), number.loose))
    };
    Parsed { contact_id, kind, guess, written, address, loose }
}
