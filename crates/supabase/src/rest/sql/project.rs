//! The select list.

use gleaner_http::WireError;
use http::StatusCode;

use super::{Compiler, Scope};
use crate::rest::query::{Field, Item, Key};

/// PostgreSQL's functions take a hundred arguments; a pair needs two.
const PAIRS_IN_A_CALL: usize = 50;

/// The list between `select` and `from`, and how a row of it, called `pN`, becomes JSON.
#[derive(Debug)]
pub(super) struct Projection {
    pub list: String,
    pub json: String,
}

/// Values of the row, under the catalogue's names.
#[derive(Debug)]
enum Entry {
    All,
    Known(String, String),
}

impl Compiler<'_> {
    pub(super) fn project(&mut self, scope: &Scope<'_>, items: &[Item], path: &[String]) -> Result<Projection, WireError> {
        if items.iter().any(is_named_by_client) { self.build(scope, items, path) } else { self.as_row(scope, items, path) }
    }

    /// The row as it is, where all names are the catalogue's.
    fn as_row(&mut self, scope: &Scope<'_>, items: &[Item], path: &[String]) -> Result<Projection, WireError> {
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            match self.entry(scope, item, path)? {
                // Not expanded, so that a column added a moment ago is included.
                Some(Entry::All) => list.push(format!("{}.*", scope.alias())),
                Some(Entry::Known(name, sql)) => list.push(format!("{sql} as {}", super::quote(&name))),
                None => {}
            }
        }
        Ok(Projection { list: list.join(", "), json: format!("pg_catalog.row_to_json(p{}.*)", scope.level) })
    }

    /// An object built from names and values: some names are the client's, so all of them are parameters.
    fn build(&mut self, scope: &Scope<'_>, items: &[Item], path: &[String]) -> Result<Projection, WireError> {
        let mut pairs = Vec::with_capacity(items.len());
        for item in items {
            match self.entry(scope, item, path)? {
                Some(Entry::All) => {
                    let columns = scope.columns.iter();
                    pairs.extend(columns.map(|column| (column.name.clone(), format!("{}.{}", scope.alias(), column.sql))));
                }
                Some(Entry::Known(name, sql)) => pairs.push((given_name(item).map_or(name, str::to_owned), sql)),
                None => {}
            }
        }
        let wide = pairs.len() > PAIRS_IN_A_CALL;
        let pairs = pairs.into_iter().map(|(name, sql)| (format!("{}::pg_catalog.text", self.values.text(name)), sql));
        let object = if wide {
            let rows: Vec<_> = pairs.map(|(name, sql)| format!("({name}, pg_catalog.to_json({sql}))")).collect();
            format!("(select pg_catalog.json_object_agg(pair.name, pair.value) from (values {}) as pair (name, value))", rows.join(", "))
        } else {
            let arguments: Vec<_> = pairs.map(|(name, sql)| format!("{name}, {sql}")).collect();
            format!("pg_catalog.json_build_object({})", arguments.join(", "))
        };
        Ok(Projection { list: format!("{object} as item"), json: format!("p{}.item", scope.level) })
    }

    fn entry(&mut self, scope: &Scope<'_>, item: &Item, path: &[String]) -> Result<Option<Entry>, WireError> {
        Ok(match item {
            Item::All => Some(Entry::All),
            Item::Column { field, cast, .. } => {
                let mut sql = self.field(scope, field)?.sql;
                if let Some(cast) = cast {
                    sql = format!("{sql}::{}", self.cast(cast)?);
                }
                Some(Entry::Known(scope.column(&field.name)?.name.clone(), sql))
            }
            // Embedded only to check that it exists.
            Item::Embed(embed) if embed.items.is_empty() => None,
            Item::Embed(embed) => {
                let (name, sql) = self.embed(scope, embed, path)?;
                Some(Entry::Known(name, sql))
            }
        })
    }

    /// The catalogue's name for a type that the client named.
    fn cast(&self, name: &str) -> Result<&str, WireError> {
        let unknown = || WireError::new(StatusCode::BAD_REQUEST, "42704", format!("type \"{name}\" does not exist"));
        self.catalogue.types.get(&name.to_lowercase()).map(String::as_str).ok_or_else(unknown)
    }
}

fn is_named_by_client(item: &Item) -> bool {
    given_name(item).is_some()
}

/// The alias, or the last key of the JSON path.
fn given_name(item: &Item) -> Option<&str> {
    match item {
        Item::All => None,
        Item::Column { alias, field, .. } => alias.as_deref().or_else(|| last_name(field)),
        Item::Embed(embed) => embed.alias.as_deref(),
    }
}

/// `data->a->>b` is called `b`, and `data->list->0` is called `list`.
fn last_name(field: &Field) -> Option<&str> {
    field.path.iter().rev().find_map(|step| match &step.key {
        Key::Name(name) => Some(name.as_str()),
        Key::Index(_) => None,
    })
}
