//! What the database has: the only source of identifiers. A name in a request is looked up here, and the catalogue's own quoted
//! form goes into the SQL. A name that is not found here never reaches SQL.

mod cache;
mod compute;
mod load;
mod origin;
mod relate;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;

pub(super) use cache::Cache;

/// One read of the exposed schemas.
#[derive(Debug)]
pub(super) struct Catalogue {
    pub schemas: HashMap<String, Schema>,
    /// Types a column may be cast to, by every name they have: `int8`, `bigint`, `text[]`.
    pub types: HashMap<String, String>,
    /// When the read began. Later changes are not in it.
    pub read_at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Schema {
    pub relations: HashMap<String, Arc<Relation>>,
    /// Functions by name. Several under one name differ in their arguments.
    pub functions: HashMap<String, Vec<Arc<Function>>>,
}

/// A table or view.
#[derive(Debug, Deserialize)]
pub(super) struct Relation {
    pub schema: String,
    pub name: String,
    /// Quoted and with its schema.
    pub sql: String,
    pub columns: Vec<Column>,
    pub primary_key: Vec<String>,
    pub(super) oid: u32,
    /// The type of its rows.
    pub(super) row_type: u32,
    pub view: bool,
    /// Its own foreign keys and, for a view, those of the tables whose columns it shows; one entry for each exposed relation that a
    /// key leads to.
    #[serde(skip)]
    pub foreign_keys: Vec<ForeignKey>,
    /// Functions of its rows.
    #[serde(skip)]
    pub computed: Vec<Computed>,
}

/// A function whose only argument is a row of a table or view: a computed column, or a computed relationship.
#[derive(Debug)]
pub(super) struct Computed {
    pub name: String,
    /// The function, quoted and with its schema.
    pub sql: String,
    pub gives: Gives,
}

#[derive(Debug)]
pub(super) enum Gives {
    Value(Type),
    /// Rows of another relation.
    Rows {
        relation: RelationName,
        /// Any number of rows, not at most one.
        many: bool,
        /// Returns a set, in which there is no row of nulls for none.
        set: bool,
    },
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Column {
    pub name: String,
    /// Quoted.
    pub sql: String,
    /// Its position in the relation. Columns that a function returns have none.
    #[serde(default)]
    pub(super) number: i16,
    #[serde(rename = "type")]
    pub(super) oid: u32,
    #[serde(skip)]
    pub kind: Type,
    /// The default of a missing value, as an expression; `None` means null.
    pub default: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Type {
    /// Quoted and with its schema. Never a keyword, so that `char` and `bit` mean the catalogue's types.
    pub sql: String,
    /// The type of arrays of it, if there is one.
    pub array: Option<String>,
}

impl Default for Type {
    /// The type that PostgreSQL gives a value it knows nothing about.
    fn default() -> Self {
        Self::text()
    }
}

impl Type {
    pub(super) fn text() -> Self {
        Self { sql: "pg_catalog.text".to_owned(), array: Some("pg_catalog._text".to_owned()) }
    }

    pub(super) fn jsonb() -> Self {
        Self { sql: "pg_catalog.jsonb".to_owned(), array: Some("pg_catalog._jsonb".to_owned()) }
    }
}

/// A foreign key from one exposed relation to another, with the columns as these two show them.
#[derive(Debug)]
pub(super) struct ForeignKey {
    pub name: String,
    pub columns: Vec<String>,
    pub schema: String,
    pub relation: String,
    pub referenced: Vec<String>,
    /// The columns are unique: at most one row has given values in them.
    pub unique: bool,
    /// Its relation is a junction table: the columns are part of its primary key.
    pub joins: bool,
    /// It is a view's, whose table is exposed with the same foreign key.
    pub repeats: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Function {
    pub schema: String,
    pub name: String,
    /// Quoted and with its schema.
    pub sql: String,
    /// Neither stable nor immutable: calling it may change data.
    pub volatile: bool,
    pub arguments: Vec<Argument>,
    pub returns: Returns,
    /// Whether it returns any number of rows or values, or one.
    pub many: bool,
    /// It returns a set, which never has more than one row.
    pub(super) one_row: bool,
    /// The type of its result.
    pub(super) result: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct Argument {
    pub name: String,
    /// Quoted.
    pub sql: String,
    #[serde(rename = "type")]
    pub(super) oid: u32,
    #[serde(skip)]
    pub kind: Type,
    pub required: bool,
    pub variadic: bool,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Returns {
    Nothing,
    Value,
    /// Rows with these columns; those of `relation` when it is a table's row type.
    Rows {
        columns: Vec<Column>,
        relation: Option<RelationName>,
    },
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct RelationName {
    pub schema: String,
    pub name: String,
}

impl Catalogue {
    pub(super) fn relation(&self, schema: &str, name: &str) -> Option<&Arc<Relation>> {
        self.schemas.get(schema)?.relations.get(name)
    }

    pub(super) fn functions(&self, schema: &str, name: &str) -> &[Arc<Function>] {
        self.schemas.get(schema).and_then(|schema| schema.functions.get(name)).map_or(&[], Vec::as_slice)
    }
}

impl Relation {
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        find(&self.columns, name)
    }

    pub(super) fn computed_column(&self, name: &str) -> Option<(&Computed, &Type)> {
        self.computed.iter().find_map(|computed| match &computed.gives {
            Gives::Value(kind) if computed.name == name => Some((computed, kind)),
            _ => None,
        })
    }
}

impl Function {
    /// Its only argument, if that has no name and is of one of these types.
    pub(super) fn unnamed(&self, types: &[&str]) -> Option<&Argument> {
        match self.arguments.as_slice() {
            [only] if only.name.is_empty() && types.contains(&only.kind.sql.as_str()) => Some(only),
            _ => None,
        }
    }

    pub(super) fn argument(&self, name: &str) -> Option<&Argument> {
        // An argument without a name can only be omitted.
        self.arguments.iter().find(|argument| !name.is_empty() && argument.name == name)
    }
}

pub(super) fn find<'a>(columns: &'a [Column], name: &str) -> Option<&'a Column> {
    columns.iter().find(|column| column.name == name)
}
