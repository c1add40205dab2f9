//! The list of activities that no contact was found for.

use std::fmt;
use std::str::FromStr;

use gleaner_http::database::{Error, Result};
use serde::{Deserialize, Serialize};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Row};
use utoipa::ToSchema;
use uuid::Uuid;

/// An activity without a contact, as it is listed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Unmatched {
    pub id: Uuid,
    #[serde(rename = "type")]
    pub kind: String,
    #[schema(required)]
    pub direction: Option<String>,
    pub created_at: String,
    #[serde(skip)]
    pub age_seconds: f64,
    #[schema(required)]
    pub sales_id: Option<i64>,
    #[schema(required)]
    pub provider_id: Option<Uuid>,
    /// In the form that is compared. None when the message names no sender.
    #[schema(required)]
    pub sender: Option<String>,
    /// The address as it was written, and the name that the sender gave.
    #[schema(required)]
    pub from: Option<String>,
    #[schema(required)]
    pub sender_name: Option<String>,
    #[schema(required)]
    pub subject: Option<String>,
    #[schema(required)]
    pub excerpt: Option<String>,
    /// How the candidates were found: a matching rule, or `unlinked` by a person.
    #[schema(required)]
    pub method: Option<String>,
    pub candidates: Vec<Candidate>,
}

/// A contact that may be the sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Candidate {
    pub id: i64,
    pub name: String,
}

/// Which part of the list, newest first.
#[derive(Debug, Clone)]
pub struct Page {
    pub limit: i64,
    /// The last row of the page before.
    pub after: Option<Cursor>,
}

impl Default for Page {
    fn default() -> Self {
        Self { limit: 50, after: None }
    }
}

/// A position in the list that stays valid while rows are added and removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    created_at: String,
    id: Uuid,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.created_at, self.id)
    }
}

impl FromStr for Cursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "a cursor is what `next` of the page before says";
        let (created_at, id) = text.rsplit_once('_').ok_or(wrong)?;
        // Accept exactly the format we produce: PostgreSQL would accept far more, and raise errors about the rest.
        let shape = "0000-00-00T00:00:00.000000Z";
        let fits = |(c, s): (u8, u8)| if s == b'0' { c.is_ascii_digit() } else { c == s };
        if created_at.len() != shape.len() || !created_at.bytes().zip(shape.bytes()).all(fits) {
            return Err(wrong);
        }
        Ok(Self { created_at: created_at.to_owned(), id: id.parse().map_err(|_| wrong)? })
    }
}

impl Unmatched {
    pub fn cursor(&self) -> Cursor {
        Cursor { created_at: self.created_at.clone(), id: self.id }
    }
}

/// One page of the list, as far as the caller may see it.
pub async fn unmatched(client: &impl GenericClient, page: &Page) -> Result<Vec<Unmatched>> {
    // The first condition can use the index, the second makes the position exact.
    let after = match page.after {
        Some(_) => "where u.created_at <= $2::text::timestamptz and (u.created_at, u.id) < ($2::text::timestamptz, $3)",
        None => "",
    };
    let sql = format!(
        "select u.id, u.type, u.direction, to_char(u.created_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'),
                extract(epoch from clock_timestamp() - u.created_at)::float8, u.sales_id, u.provider_id, u.sender_address,
                coalesce(u.metadata ->> 'from', u.raw_data ->> 'sender'), coalesce(u.metadata ->> 'sender_name', u.metadata ->> 'profile_name'),
                u.raw_data ->> 'subject', left(u.raw_data ->> 'content', 200), u.metadata #>> '{{match,method}}',
                (select coalesce(jsonb_agg(jsonb_build_object('id', c.id, 'name', concat_ws(' ', c.first_name, c.last_name)) order by c.id), '[]')
                 from jsonb_array_elements_text(case jsonb_typeof(u.candidates) when 'array' then u.candidates end) as listed (id)
                 -- Every caller who may edit the row may have written this.
                 join public.contacts as c on c.id = case when listed.id ~ '^[0-9]{{1,18}}$' then listed.id::bigint end)
         from public.unmatched_activities as u
         {after}
         order by u.created_at desc, u.id desc
         limit $1"
    );
    let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![(&page.limit, Type::INT8)];
    if let Some(cursor) = &page.after {
        parameters.push((&cursor.created_at, Type::TEXT));
        parameters.push((&cursor.id, Type::UUID));
    }
    let rows = client.query_typed(&sql, &parameters).await.map_err(Error::doing("list unmatched activities"))?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Unmatched> {
    let candidates = serde_json::from_value(row.get(13)).map_err(|error| Error::Other(format!("read candidates: {error}")))?;
    Ok(Unmatched {
        id: row.get(0),
        kind: row.get(1),
        direction: row.get(2),
        created_at: row.get(3),
        age_seconds: row.get(4),
        sales_id: row.get(5),
        provider_id: row.get(6),
        sender: row.get(7),
        from: row.get(8),
        sender_name: row.get(9),
        subject: row.get(10),
        excerpt: row.get(11),
        method: row.get(12),
        candidates,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_only_what_a_page_gave_out() {
        let text = "2026-01-02T03:04:05.000006Z_00000000-0000-0000-0000-000000000007";
        assert_eq!(text.parse::<Cursor>().map(|cursor| cursor.to_string()), Ok(text.to_owned()));
        for wrong in ["", "x", "now_00000000-0000-0000-0000-000000000007", "2026-01-02T03:04:05.000006Z_7", "2026-01-02T03:04:05.000006Z"] {
            assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
        }
    }
}
