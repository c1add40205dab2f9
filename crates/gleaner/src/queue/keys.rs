//! How keys are sent to and read from the database: as text, because they may be of any type, or as numbers if they are numbers.

use std::fmt;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::acts::Param;

/// The SQL type of a queue's key.
#[derive(Debug, Clone)]
pub(super) struct KeyType {
    sql: String,
    /// Numbers are cheap for the database to parse and print, which matters with hundreds at a time.
    number: bool,
}

impl KeyType {
    pub(super) fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), number: sql == "bigint" }
    }

    /// The expression `key` in the form that [`KeyType::read`] reads.
    pub(super) fn output(&self, key: &str) -> String {
        if self.number { key.to_owned() } else { format!("{key}::text") }
    }

    pub(super) fn read(&self, row: &Row, column: usize) -> String {
        if self.number { row.get::<_, i64>(column).to_string() } else { row.get(column) }
    }

    /// Many keys as one parameter.
    pub(super) fn array<'a>(&self, keys: impl Iterator<Item = &'a str> + Clone) -> Keys<'a> {
        // The database rejects what is not a number, with its own message.
        let numbers = if self.number { keys.clone().map(|key| key.parse().ok()).collect() } else { None };
        match numbers {
            Some(numbers) => Keys::Numbers(numbers),
            None => Keys::Texts { keys: keys.collect(), sql: self.sql.clone() },
        }
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sql)
    }
}

#[derive(Debug)]
pub(super) enum Keys<'a> {
    Numbers(Vec<i64>),
    Texts { keys: Vec<&'a str>, sql: String },
}

impl Keys<'_> {
    pub(super) fn param(&self) -> Param<'_> {
        match self {
            Self::Numbers(keys) => (keys, Type::INT8_ARRAY),
            Self::Texts { keys, .. } => (keys, Type::TEXT_ARRAY),
        }
    }

    /// The parameter at `position` as an array of the key's type.
    pub(super) fn sql(&self, position: usize) -> String {
        match self {
            Self::Numbers(_) => format!("${position}"),
            Self::Texts { sql, .. } => format!("${position}::text[]::{sql}[]"),
        }
    }
}
