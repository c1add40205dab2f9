//! The query string, parsed as PostgREST does. Names are still the client's and not trusted; they are looked up in the catalogue
//! when the SQL is compiled.

mod condition;
mod cursor;
mod decode;
mod field;
mod names;
mod order;
mod select;

use std::collections::BTreeMap;

use gleaner_http::WireError;
use http::StatusCode;

use super::range::{Range, unsatisfiable};

pub(super) use condition::{Comparison, Condition, Is, Test, looks_like_a_filter};
pub(super) use decode::{Parameters, decode, decode_segment};
pub(super) use field::{Field, Key};
pub(super) use order::Order;
pub(super) use select::{Embed, Item};

/// A request's query string.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub select: Vec<Item>,
    /// The part that concerns the table itself, under the empty path, and those of embedded resources, each under its path.
    pub parts: BTreeMap<Vec<String>, Part>,
    pub columns: Option<Vec<String>>,
    pub on_conflict: Option<Vec<String>>,
}

/// Which rows, in which order, and how many.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub conditions: Vec<Condition>,
    pub order: Vec<Order>,
    pub limit: Option<u64>,
    pub offset: u64,
}

impl Query {
    /// Reads decoded parameters. All conditions hold together.
    pub(super) fn parse(parameters: &Parameters) -> Result<Self, WireError> {
        let mut query = Self { select: vec![Item::All], ..Self::default() };
        for (name, value) in parameters {
            match name.as_str() {
                // The project key may be sent as a query parameter. It is not a column.
                "apikey" => {}
                "select" if value.trim().is_empty() => {}
                "select" => query.select = select::parse(value)?,
                "columns" => query.columns = Some(names::parse("columns", value)?),
                "on_conflict" => query.on_conflict = Some(names::parse("on_conflict", value)?),
                _ => query.parse_part(name, value)?,
            }
        }
        query.check_paths()?;
        Ok(query)
    }

    /// Narrows the rows to those of the `Range` header.
    pub(super) fn narrow(&mut self, range: Option<Range>) -> Result<(), WireError> {
        let Some(range) = range else { return Ok(()) };
        let part = self.parts.entry(Vec::new()).or_default();
        if part.limit == Some(0) {
            return Ok(());
        }
        let end =
            part.limit.map(|limit| part.offset.saturating_add(limit)).into_iter().chain(range.last.map(|last| last.saturating_add(1)));
        let (first, end) = (part.offset.max(range.first), end.min());
        if end.is_some_and(|end| end <= first) {
            return Err(unsatisfiable().details("Limit should be greater than or equal to zero."));
        }
        (part.offset, part.limit) = (first, end.map(|end| end - first));
        Ok(())
    }

    pub(super) fn part(&self, path: &[String]) -> Option<&Part> {
        self.parts.get(path)
    }

    fn parse_part(&mut self, name: &str, value: &str) -> Result<(), WireError> {
        let target = field::parse_target(name)?;
        let part = self.parts.entry(target.path).or_default();
        match target.what {
            field::What::Order => part.order = order::parse(value)?,
            field::What::Limit => part.limit = Some(count(name, value)?),
            field::What::Offset => part.offset = count(name, value)?,
            field::What::Logic { any, negated } => part.conditions.push(condition::parse_group(name, value, any, negated)?),
            field::What::Field(field) => part.conditions.push(condition::parse_expression(field, value)?),
        }
        Ok(())
    }

    /// Every path must lead to something that `select` embeds.
    fn check_paths(&self) -> Result<(), WireError> {
        for path in self.parts.keys() {
            let mut items = &self.select;
            for name in path {
                let found = items.iter().find_map(|item| match item {
                    Item::Embed(embed) if embed.is_called(name) => Some(&embed.items),
                    _ => None,
                });
                let Some(inner) = found else {
                    let message = format!("'{name}' is not an embedded resource in this request");
                    return Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST108", message)
                        .hint(format!("Verify that '{name}' is included in the 'select' query parameter.")));
                };
                items = inner;
            }
        }
        Ok(())
    }
}

/// `limit` and `offset`.
fn count(name: &str, value: &str) -> Result<u64, WireError> {
    let number: i64 = value.parse().map_err(|_| {
        WireError::new(StatusCode::BAD_REQUEST, "PGRST100", format!("\"failed to parse {name} ({value})\" (line 1, column 1)"))
            .details("expecting an integer")
    })?;
    u64::try_from(number).map_err(|_| unsatisfiable().details("Limit should be greater than or equal to zero."))
}
