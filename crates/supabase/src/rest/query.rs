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

pub(super) use condition::{Comparison, Condition, Is, Search, Test, looks_like_a_filter};
pub(super) use decode::{Parameters, decode, decode_segment};
pub(super) use field::{Field, Key};
pub(super) use order::Order;
pub(super) use select::{Embed, Item, find as find_embed};

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
        query.resolve_paths()?;
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
            // Before the first row there is nothing to skip.
            field::What::Offset => part.offset = u64::try_from(number(name, value)?).unwrap_or(0),
            field::What::Logic { any, negated } => part.conditions.push(condition::parse_group(name, value, any, negated)?),
            field::What::Field(field) => part.conditions.push(condition::parse_expression(field, value)?),
        }
        Ok(())
    }

    /// Every path must lead to something that `select` embeds. From here on it is called as `select` calls it: by its alias, if it
    /// has one.
    fn resolve_paths(&mut self) -> Result<(), WireError> {
        for (path, part) in std::mem::take(&mut self.parts) {
            let mut items = &self.select;
            let mut called = Vec::with_capacity(path.len());
            for name in path {
                let Some(embed) = select::find(items, &name) else { return Err(not_embedded(&name)) };
                called.push(embed.name().to_owned());
                items = &embed.items;
            }
            self.parts.entry(called).or_default().add(part);
        }
        Ok(())
    }
}

impl Part {
    /// Adds what the client wrote under another name of the same resource.
    fn add(&mut self, other: Self) {
        self.conditions.extend(other.conditions);
        if self.order.is_empty() {
            self.order = other.order;
        }
        self.limit = self.limit.or(other.limit);
        self.offset = self.offset.max(other.offset);
    }
}

pub(super) fn not_embedded(name: &str) -> WireError {
    WireError::new(StatusCode::BAD_REQUEST, "PGRST108", format!("'{name}' is not an embedded resource in this request"))
        .hint(format!("Verify that '{name}' is included in the 'select' query parameter."))
}

/// `limit` and `offset`.
fn number(name: &str, value: &str) -> Result<i64, WireError> {
    value.parse().map_err(|_| {
        WireError::new(StatusCode::BAD_REQUEST, "PGRST100", format!("\"failed to parse {name} ({value})\" (line 1, column 1)"))
            .details("expecting an integer")
    })
}

fn count(name: &str, value: &str) -> Result<u64, WireError> {
    let refused = |_| unsatisfiable().details("Limit should be greater than or equal to zero.");
    u64::try_from(number(name, value)?).map_err(refused)
}
