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
mod update;
mod values;

use gleaner_http::WireError;
use http::StatusCode;

pub(super) use call::Arguments;
pub(super) use insert::{Inserting, Upsert};
pub(super) use read::Reading;
pub(super) use update::Updating;
pub(super) use values::Statement;

use super::catalogue::{Catalogue, Column, Relation, find};
use super::query::{Part, Query};
use values::Values;

/// Compiles one statement for one request.
#[derive(Debug)]
pub(super) struct Compiler<'a> {
    catalogue: &'a Catalogue,
    query: &'a Query,
    values: Values,
    /// The most rows of each embedded list.
    most: Option<u64>,
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
}

impl<'a> Compiler<'a> {
    pub(super) fn new(catalogue: &'a Catalogue, query: &'a Query) -> Self {
        Self { catalogue, query, values: Values::default(), most: None }
    }

    fn part(&self, path: &[String]) -> &'a Part {
        static NONE: Part = Part { conditions: Vec::new(), order: Vec::new(), limit: None, offset: 0 };
        self.query.part(path).unwrap_or(&NONE)
    }

    fn finish(self, sql: String) -> Result<Statement, WireError> {
        self.values.finish(sql)
    }
}

impl<'a> Scope<'a> {
    fn of(relation: &'a Relation) -> Self {
        Self { name: &relation.name, columns: &relation.columns, relation: Some(relation), level: 0 }
    }

    fn alias(&self) -> String {
        format!("t{}", self.level)
    }

    fn column(&self, name: &str) -> Result<&'a Column, WireError> {
        find(self.columns, name)
            .ok_or_else(|| WireError::new(StatusCode::BAD_REQUEST, "42703", format!("column {}.{name} does not exist", self.name)))
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
