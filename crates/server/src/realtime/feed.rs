//! What changed in the database, in commit order: one feed for the whole server, however many subscribers it has.
//!
//! - [`wal`] reads the log by logical decoding, on a temporary slot that dies with us and so never holds WAL back.
//! - [`pgoutput`] decodes its messages, [`values`] turns PostgreSQL's text forms into JSON.

pub mod pgoutput;
pub mod values;
pub mod wal;

use std::sync::Arc;

use pgoutput::Cell;
use values::Shape;

/// What the feed tells, in order.
#[derive(Debug, Clone)]
pub enum News {
    /// From here on every commit is seen.
    Live,
    Commit(Commit),
    /// Commits may have been missed: whoever follows must look for themselves.
    Gap,
}

#[derive(Debug, Clone)]
pub struct Commit {
    /// The lower half of the transaction's id, as the log has it.
    pub xid: u32,
    /// Microseconds since 1970.
    pub at_micros: i64,
    pub changes: Vec<Change>,
}

#[derive(Debug, Clone)]
pub struct Change {
    pub table: Arc<Table>,
    pub kind: Kind,
    /// The whole new row; none for a delete.
    pub new: Option<Vec<Cell>>,
    /// The old row as far as the log has it, under the usual replica identity its key; none for an insert.
    pub old: Option<Vec<Cell>>,
}

impl Change {
    /// The row that filters are held against: the new one, or for a delete the old.
    pub fn row(&self) -> &[Cell] {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Insert,
    Update,
    Delete,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A table as it was when its changes were written.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub schema: String,
    pub name: String,
    pub columns: Vec<Column>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// As in `pg_type`: `int8`, `_text`.
    pub type_name: String,
    /// As SQL writes it, for casts: `pg_catalog.int8`, `public.mood`.
    pub sql_type: String,
    pub shape: Shape,
    pub is_key: bool,
}

impl Table {
    pub fn keys(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.is_key)
    }
}
