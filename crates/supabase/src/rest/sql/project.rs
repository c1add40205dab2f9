//! The select list.

use gleaner_http::WireError;
use http::StatusCode;

use super::{Compiler, Scope};
use crate::rest::catalogue::Column;
use crate::rest::query::{Embed, Field, Item, Key};

/// PostgreSQL's functions take a hundred arguments; a pair needs two.
const PAIRS_IN_A_CALL: usize = 50;

/// The list between `select` and `from`, what is joined to the source of the rows, and how a row of it, called `pN`, becomes JSON.
#[derive(Debug)]
pub(super) struct Projection {
    pub list: String,
    pub joins: String,
    pub json: String,
}

/// A value of the row, or all its columns.
#[derive(Debug)]
pub(super) enum Entry {
    All,
    Value { name: Name, sql: String },
}

/// What a value is called in the response.
#[derive(Debug)]
pub(super) enum Name {
    Catalogue(String),
    Client(String),
}

impl<'a> Compiler<'a> {
    pub(super) fn project(&mut self, scope: &Scope<'a>, items: &[Item], path: &[String]) -> Result<Projection, WireError> {
        let mut joins = String::new();
        let entries = self.entries(scope, items, path, &mut joins)?;
        let named_by_client = |entry: &Entry| matches!(entry, Entry::Value { name: Name::Client(_), .. });
        let (list, json) = if entries.iter().any(named_by_client) { self.build(scope, entries) } else { as_row(scope, entries) };
        Ok(Projection { list, joins, json })
    }

    /// The select list, one by one. Resources that are spread are joined.
    pub(super) fn entries(
        &mut self,
        scope: &Scope<'a>,
        items: &[Item],
        path: &[String],
        joins: &mut String,
    ) -> Result<Vec<Entry>, WireError> {
        let mut entries = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::All => entries.push(Entry::All),
                Item::Column { alias, field, cast } => entries.push(self.column(scope, alias.as_ref(), field, cast.as_deref())?),
                // Embedded only to check that it exists.
                Item::Embed(embed) if is_empty(embed) => drop(self.related(scope, embed, path)?),
                Item::Embed(embed) if embed.spread => entries.extend(self.spread(scope, embed, path, joins)?),
                Item::Embed(embed) => {
                    let (name, sql) = self.embed(scope, embed, path)?;
                    let name = embed.alias.clone().map_or(Name::Catalogue(name), Name::Client);
                    entries.push(Entry::Value { name, sql });
                }
            }
        }
        Ok(entries)
    }

    fn column(&mut self, scope: &Scope<'a>, alias: Option<&String>, field: &Field, cast: Option<&str>) -> Result<Entry, WireError> {
        let counts = scope.counts(field);
        let mut sql = if counts { "pg_catalog.count(*)".to_owned() } else { self.field(scope, field)?.sql };
        if let Some(cast) = cast {
            sql = format!("{sql}::{}", self.cast(cast)?);
        }
        let name = match alias.cloned().or_else(|| last_name(field)) {
            Some(given) => Name::Client(given),
            // A column or a function of that name is in the catalogue.
            None => Name::Catalogue(field.name.clone()),
        };
        Ok(Entry::Value { name, sql })
    }

    /// An object built from names and values: some names are the client's, so all of them are parameters.
    fn build(&mut self, scope: &Scope<'a>, entries: Vec<Entry>) -> (String, String) {
        let pairs: Vec<_> = expanded(scope, entries)
            .into_iter()
            .map(|(name, sql)| match name {
                Name::Catalogue(name) | Name::Client(name) => (format!("{}::pg_catalog.text", self.values.text(name)), sql),
            })
            .collect();
        let object = if pairs.len() > PAIRS_IN_A_CALL {
            let rows: Vec<_> = pairs.iter().map(|(name, sql)| format!("({name}, pg_catalog.to_json({sql}))")).collect();
            format!("(select pg_catalog.json_object_agg(pair.name, pair.value) from (values {}) as pair (name, value))", rows.join(", "))
        } else {
            let arguments: Vec<_> = pairs.iter().map(|(name, sql)| format!("{name}, {sql}")).collect();
            format!("pg_catalog.json_build_object({})", arguments.join(", "))
        };
        (format!("{object} as item"), format!("p{}.item", scope.level))
    }

    /// The catalogue's name for a type that the client named.
    fn cast(&self, name: &str) -> Result<&str, WireError> {
        let unknown = || WireError::new(StatusCode::BAD_REQUEST, "42704", format!("type \"{name}\" does not exist"));
        self.catalogue.types.get(&name.to_lowercase()).map(String::as_str).ok_or_else(unknown)
    }
}

/// The row as it is, where all names are the catalogue's.
fn as_row(scope: &Scope<'_>, entries: Vec<Entry>) -> (String, String) {
    let render = |entry| match entry {
        // Not expanded, so that a column added a moment ago is included.
        Entry::All => format!("{}.*", scope.alias()),
        Entry::Value { name: Name::Catalogue(name) | Name::Client(name), sql } => format!("{sql} as {}", super::quote(&name)),
    };
    let list: Vec<_> = entries.into_iter().map(render).collect();
    (list.join(", "), format!("pg_catalog.row_to_json(p{}.*)", scope.level))
}

/// Every value by itself.
pub(super) fn expanded(scope: &Scope<'_>, entries: Vec<Entry>) -> Vec<(Name, String)> {
    let mut values = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry {
            Entry::All => {
                let column = |column: &Column| (Name::Catalogue(column.name.clone()), format!("{}.{}", scope.alias(), column.sql));
                values.extend(scope.columns.iter().map(column));
            }
            Entry::Value { name, sql } => values.push((name, sql)),
        }
    }
    values
}

/// Nothing of it is shown: `rel()`, `rel(other())`.
fn is_empty(embed: &Embed) -> bool {
    embed.items.iter().all(|item| matches!(item, Item::Embed(inner) if is_empty(inner)))
}

/// `data->a->>b` is called `b`, and `data->list->0` is called `list`.
fn last_name(field: &Field) -> Option<String> {
    field.path.iter().rev().find_map(|step| match &step.key {
        Key::Name(name) => Some(name.clone()),
        Key::Index(_) => None,
    })
}
