//! Compiles a query and the catalogue to one statement. Everything the client wrote becomes a parameter: values, JSON keys and
//! names that the client chose. The text of a statement consists of our own text and the catalogue's names.
//!
//! Every statement returns one row: the rows as JSON joined by commas, their number, the total number (or null), and how many an
//! upsert inserted (or null).

mod call;
mod condition;
mod delete;
mod embed;
mod field;
#[cfg(test)]
mod hostile;
mod insert;
mod project;
mod read;
mod relationship;
mod returning;
mod spread;
mod update;
mod values;

use gleaner_http::WireError;
use http::StatusCode;

pub(super) use call::Arguments;
pub(super) use insert::{Inserting, Upsert};
pub(super) use read::Reading;
pub(super) use update::Updating;
pub(super) use values::Statement;

use super::catalogue::{Catalogue, Column, Computed, Relation, Type, find};
use super::query::{Field, Item, Part, Query, find_embed};
use field::Typed;
use values::Values;

/// Compiles one statement for one request.
#[derive(Debug)]
pub(super) struct Compiler<'a> {
    catalogue: &'a Catalogue,
    query: &'a Query,
    values: Values,
    /// The most rows of each embedded list.
    most: Option<u64>,
    /// How many resources are spread. Each has a number of its own, which names its row in SQL: s1, s2, …
    spreads: usize,
}

/// The rows that an expression may refer to.
#[derive(Debug, Clone, Copy)]
struct Scope<'a> {
    /// For messages.
    name: &'a str,
    columns: &'a [Column],
    /// The table the rows come from. What a function returns may have none, and then nothing can be embedded.
    relation: Option<&'a Relation>,
    /// The depth of embedding. It names the row in SQL: t0, t1, …
    level: usize,
    /// Its rows were read from the relation itself, and have its type. Those of a write or a function were not.
    direct: bool,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(catalogue: &'a Catalogue, query: &'a Query) -> Self {
        Self { catalogue, query, values: Values::default(), most: None, spreads: 0 }
    }

    fn part(&self, path: &[String]) -> &'a Part {
        static NONE: Part = Part { conditions: Vec::new(), order: Vec::new(), limit: None, offset: 0 };
        self.query.part(path).unwrap_or(&NONE)
    }

    /// The select list under `path`.
    fn items(&self, path: &[String]) -> &'a [Item] {
        let mut items = self.query.select.as_slice();
        for name in path {
            items = find_embed(items, name).map_or(&[], |embed| &embed.items);
        }
        items
    }

    fn finish(self, sql: String) -> Result<Statement, WireError> {
        self.values.finish(sql)
    }
}

impl<'a> Scope<'a> {
    fn of(relation: &'a Relation) -> Self {
        Self { name: &relation.name, columns: &relation.columns, relation: Some(relation), level: 0, direct: true }
    }

    fn alias(&self) -> String {
        format!("t{}", self.level)
    }

    fn column(&self, name: &str) -> Result<&'a Column, WireError> {
        find(self.columns, name).ok_or_else(|| self.missing(name))
    }

    /// The row as one value of the relation's type, for functions.
    fn row(&self) -> String {
        let alias = self.alias();
        match self.relation {
            Some(relation) if !self.direct => {
                let columns: Vec<_> = relation.columns.iter().map(|column| format!("{alias}.{}", column.sql)).collect();
                format!("row({})::{}", columns.join(", "), relation.sql)
            }
            _ => format!("{alias}.*"),
        }
    }

    /// A column, or the result of a function of the row.
    fn value(&self, name: &str) -> Result<Typed, WireError> {
        if let Some(column) = find(self.columns, name) {
            return Ok(Typed { sql: format!("{}.{}", self.alias(), column.sql), kind: column.kind.clone() });
        }
        let (computed, kind) = self.computed(name).ok_or_else(|| self.missing(name))?;
        Ok(Typed { sql: format!("{}({})", computed.sql, self.row()), kind: kind.clone() })
    }

    fn computed(&self, name: &str) -> Option<(&'a Computed, &'a Type)> {
        self.relation.and_then(|relation| relation.computed_column(name))
    }

    /// Whether `count` means the number of rows: it does where no column is called that.
    fn counts(&self, field: &Field) -> bool {
        field.name == "count" && field.path.is_empty() && find(self.columns, "count").is_none() && self.computed("count").is_none()
    }

    fn missing(&self, name: &str) -> WireError {
        WireError::new(StatusCode::BAD_REQUEST, "42703", format!("column {}.{name} does not exist", self.name))
    }
}

/// A column that is to be written.
fn written_column<'a>(relation: &'a Relation, name: &str) -> Result<&'a Column, WireError> {
    relation.column(name).ok_or_else(|| {
        let message = format!("Could not find the '{name}' column of '{}' in the schema cache", relation.name);
        WireError::new(StatusCode::BAD_REQUEST, "PGRST204", message)
    })
}

/// Quotes a name of the catalogue.
fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `where a and b`, or nothing.
fn where_all(conditions: &[String]) -> String {
    if conditions.is_empty() { String::new() } else { format!(" where {}", conditions.join(" and ")) }
}

/// Columns with their types, for functions that parse JSON into rows.
fn typed<'a>(columns: impl IntoIterator<Item = &'a Column>) -> String {
    columns.into_iter().map(|column| format!("{} {}", column.sql, column.kind.sql)).collect::<Vec<_>>().join(", ")
}
