//! Compares a declaration with the table and collects every mistake.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::Mistake;
use super::shape::Groups;
use crate::declaration::{Declaration, is_duration};
use crate::error::{Error, Result};
use crate::introspect::{Column, Table, literal, quote};

pub(super) const TEXT: &[&str] = &["text", "character varying"];
pub(super) const TIMES: &[&str] = &["timestamp with time zone", "timestamp without time zone"];
pub(super) const INTEGERS: &[&str] = &["smallint", "integer", "bigint"];
pub(super) const NUMBERS: &[&str] = &["smallint", "integer", "bigint", "numeric", "real", "double precision"];

/// Whether `data_type` is one of `types`, with or without a length.
pub(super) fn is_one_of(data_type: &str, types: &[&str]) -> bool {
    types.iter().any(|t| data_type.strip_prefix(t).is_some_and(|rest| rest.is_empty() || rest.starts_with('(') && rest.ends_with(')')))
}

/// The table a declaration is compared with, and the mistakes found so far.
pub(super) struct Check<'a> {
    pub(super) table: &'a Table,
    pub(super) mistakes: Vec<Mistake>,
}

impl<'a> Check<'a> {
    pub(super) fn new(table: &'a Table) -> Self {
        Self { table, mistakes: Vec::new() }
    }

    pub(super) fn mistake(&mut self, what: impl Into<String>, instead: impl Into<String>) {
        self.mistakes.push(Mistake { what: what.into(), instead: instead.into() });
    }

    /// The column `name` declared under `key`, if it exists and its type is one of `types` (any, when empty).
    pub(super) fn column(&mut self, key: &str, name: &str, types: &[&str]) -> Option<Column> {
        let table = self.table;
        match table.columns.get(name) {
            None => {
                let close = closest(name, table.columns.keys().map(String::as_str));
                self.mistake(
                    format!("{key} = {name:?}: {} has no such column", table.sql()),
                    match close {
                        Some(close) => format!("did you mean {close:?}?"),
                        None => format!("it has {}", table.columns.keys().cloned().collect::<Vec<_>>().join(", ")),
                    },
                );
                None
            }
            Some(column) if !types.is_empty() && !is_one_of(&column.data_type, types) => {
                self.mistake(
                    format!("{key} = {name:?}: the column is {}", column.data_type),
                    format!("name a column of type {}", types.join(" or ")),
                );
                None
            }
            Some(column) => Some(column.clone()),
        }
    }

    pub(super) fn duration(&mut self, key: &str, text: &str) -> String {
        if !is_duration(text) {
            self.mistake(
                format!("{key} = {text:?} is not a duration"),
                "write a number and a unit, such as \"5 minutes\" or \"1 hour 30 minutes\"",
            );
        }
        format!("interval {}", literal(text))
    }
}

/// The groups that members are limited to. Whether the function exists is not asked: a system may create it later.
pub(super) fn groups(check: &mut Check<'_>, d: &Declaration) -> Option<Groups> {
    let declared = d.grant.groups.as_ref()?;
    let (column, function) = limit(check, d, "groups", &declared.column, &declared.function)?;
    Some(Groups { mine: format!("{function}()"), column })
}

/// The condition of rows, as `q`, that members may operate; none where `own` is not limited.
pub(super) fn admits(check: &mut Check<'_>, d: &Declaration, groups: Option<&Groups>) -> Option<String> {
    let declared = d.grant.admits.as_ref();
    if declared.is_some() && groups.is_some() {
        check.mistake("grant.admits: the groups of this queue already decide", "leave `admits` or `groups` out");
    }
    let of_groups = groups.map(|groups| format!("q.{} = any ({})", groups.column, groups.mine));
    of_groups.or_else(|| {
        let (column, function) = limit(check, d, "admits", &declared?.column, &declared?.function)?;
        Some(format!("{function}(q.{column})"))
    })
}

/// The column and the function of a limit on `own`, quoted.
fn limit(check: &mut Check<'_>, d: &Declaration, key: &str, column: &str, function: &str) -> Option<(String, String)> {
    if d.owner.is_some() {
        check.mistake(format!("grant.{key}: rows of this queue have owners, who already decide"), format!("leave `{key}` or `owner` out"));
    }
    check.column(&format!("grant.{key}.column"), column, &[])?;
    let [schema, name] = function.split('.').collect::<Vec<_>>()[..] else {
        check.mistake(
            format!("grant.{key}.function = {function:?} is no function with its schema"),
            "write it as \"public.my_function\", without parentheses",
        );
        return None;
    };
    Some((quote(column), format!("{}.{}", quote(schema), quote(name))))
}

/// A time zone that PostgreSQL does not know would fail in every act.
pub(super) async fn check_zone(client: &impl GenericClient, d: &Declaration, check: &mut Check<'_>) -> Result<()> {
    let Some(zone) = &d.zone else { return Ok(()) };
    let rows = client
        .query_typed("select exists (select from pg_timezone_names where lower(name) = lower($1))", &[(zone, Type::TEXT)])
        .await
        .map_err(Error::doing("look the time zone up"))?;
    if !rows[0].get::<_, bool>(0) {
        check.mistake(format!("zone = {zone:?} is not a time zone"), "write one as in pg_timezone_names, such as \"Europe/Rome\"");
    }
    Ok(())
}

pub(super) async fn check_roles(client: &impl GenericClient, d: &Declaration, check: &mut Check<'_>) -> Result<()> {
    let roles: Vec<&String> = d.grant.work.iter().chain(&d.grant.operate).chain(&d.grant.own).collect();
    let unknown = client
        .query_typed(
            "select r from unnest($1) with ordinality as u (r, n) where r not in (select rolname from pg_roles) group by r order by min(n)",
            &[(&roles, Type::TEXT_ARRAY)],
        )
        .await
        .map_err(Error::doing("look the roles up"))?;
    for row in &unknown {
        check.mistake(
            format!("grant names the role {:?}, which does not exist", row.get::<_, String>(0)),
            "create it first, or leave it out",
        );
    }
    Ok(())
}

/// The known name most similar to `name`, if any is similar.
fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known.map(|k| (distance(name, k), k)).min().filter(|(d, k)| *d <= 1 + name.len().max(k.len()) / 4).map(|(_, k)| k)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut previous = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = previous + usize::from(ca != *cb);
            previous = row[j + 1];
            row[j + 1] = substituted.min(previous + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
