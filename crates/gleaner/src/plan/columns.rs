//! The engine's own columns, and the table's columns that it reads and writes.

use super::EngineColumn;
use super::check::{Check, INTEGERS, NUMBERS, TIMES, is_one_of};
use super::shape::{ColumnRef, Content, EngineColumns, Holder, Place};
use crate::declaration::Declaration;
use crate::introspect::literal;

/// Engine columns: role, type, default. Roles are also the keys of `rename`.
pub(super) const COLUMNS: &[(&str, &str, &str, &str)] = &[
    ("due", "due_at", "timestamptz", "now()"),
    ("open", "open_at", "timestamptz", ""),
    ("lease", "lease", "bigint", "0"),
    ("deadline", "deadline_at", "timestamptz", ""),
    ("attempts", "attempts", "integer", "0"),
    ("lost", "lost", "integer", "0"),
    ("started", "started", "smallint", "0"),
    ("agent", "agent", "text", ""),
    ("session", "session", "text", ""),
];

/// The engine's columns on this table.
pub(super) struct Columns {
    /// Columns that belong to the engine and are not declared by the table's author.
    pub(super) own: Vec<EngineColumn>,
    /// Bare names by role.
    pub(super) names: EngineColumns,
}

impl Columns {
    /// Every role and the name of its column.
    pub(super) fn roles(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let n = &self.names;
        [
            ("due", Some(&n.due)),
            ("open", n.open.as_ref()),
            ("lease", Some(&n.lease)),
            ("deadline", Some(&n.deadline)),
            ("attempts", Some(&n.attempts)),
            ("lost", Some(&n.lost)),
            ("started", Some(&n.started)),
            ("agent", Some(&n.agent)),
            ("session", Some(&n.session)),
        ]
        .into_iter()
        .filter_map(|(role, name)| Some((role, name?.as_str())))
    }
}

pub(super) fn engine(check: &mut Check<'_>, d: &Declaration) -> Columns {
    let table = check.table;
    let mut columns = Vec::new();
    for (role, default_name, definition, default) in COLUMNS {
        if *role == "open" && d.owner.is_none() {
            continue;
        }
        if let ("attempts", Some(own)) = (*role, &d.attempts) {
            check.column("attempts", own, INTEGERS);
            continue;
        }
        let column = named(d, default_name);
        if let Some(found) = table.columns.get(&column) {
            let wanted = match *definition {
                "timestamptz" => "timestamp with time zone",
                other => other,
            };
            let fits =
                found.data_type == wanted || (*role == "attempts" || *role == "lost") && INTEGERS.contains(&found.data_type.as_str());
            if !fits {
                check.mistake(
                    format!(
                        "the engine needs a column {column:?} of type {definition}, and {} has one of type {}",
                        table.sql(),
                        found.data_type
                    ),
                    format!("write rename = {{ {default_name} = \"queue_{default_name}\" }}"),
                );
            }
        }
        columns.push(EngineColumn { role, name: column, default_name, definition, default });
    }
    for renamed in d.rename.keys() {
        if !COLUMNS.iter().any(|c| c.1 == renamed) {
            check.mistake(
                format!("rename.{renamed}: the engine has no column of that name"),
                format!("its columns are {}", COLUMNS.iter().map(|c| c.1).collect::<Vec<_>>().join(", ")),
            );
        }
    }
    let names = EngineColumns {
        due: named(d, "due_at"),
        open: d.owner.as_ref().map(|_| named(d, "open_at")),
        lease: named(d, "lease"),
        deadline: named(d, "deadline_at"),
        attempts: d.attempts.clone().unwrap_or_else(|| named(d, "attempts")),
        lost: named(d, "lost"),
        started: named(d, "started"),
        agent: named(d, "agent"),
        session: named(d, "session"),
    };
    Columns { own: columns, names }
}

fn named(d: &Declaration, default_name: &str) -> String {
    d.rename.get(default_name).cloned().unwrap_or_else(|| default_name.to_owned())
}

/// A declared column.
pub(super) fn simple(check: &mut Check<'_>, key: &str, column: Option<&String>, types: &[&str]) -> Option<ColumnRef> {
    let column = column?;
    let found = check.column(key, column, types)?;
    Some(ColumnRef::new(column, &found.data_type))
}

/// A column for results or progress.
pub(super) fn content(check: &mut Check<'_>, key: &str, column: Option<&String>, types: &[&str]) -> Option<Content> {
    let base = simple(check, key, column, types)?;
    Some(Content { numeric: is_one_of(&base.data_type, NUMBERS), base })
}

/// A column, or a path inside a jsonb column. With no `bare` types only a path is accepted.
pub(super) fn place(check: &mut Check<'_>, key: &str, place: Option<&String>, bare: &[&str]) -> Option<Place> {
    let place = place?;
    match place.split_once('.') {
        Some((column, rest)) => {
            check.column(key, column, &["jsonb"])?;
            let path: Vec<String> = rest.split('.').map(path_element).collect();
            Some(Place { base: ColumnRef::new(column, "jsonb"), path: Some(literal(&format!("{{{}}}", path.join(",")))) })
        }
        None if bare.is_empty() => {
            check.mistake(format!("{key} = {place:?}"), "name a place inside a jsonb column, such as \"metadata.recovery_count\"");
            None
        }
        None => Some(Place { base: simple(check, key, Some(place), bare)?, path: None }),
    }
}

/// One key of a path, escaped for an array literal.
fn path_element(key: &str) -> String {
    let plain = !key.is_empty() && !key.eq_ignore_ascii_case("null") && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain { key.to_owned() } else { format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\"")) }
}

/// A column that holds a time.
pub(super) fn time(check: &mut Check<'_>, key: &str, column: Option<&String>) -> Option<ColumnRef> {
    simple(check, key, column, TIMES)
}

/// When a row was created: the declared column, or `created_at` if it exists.
pub(super) fn created(check: &mut Check<'_>, d: &Declaration) -> Option<ColumnRef> {
    if d.created.is_some() {
        return time(check, "created", d.created.as_ref());
    }
    let found = check.table.columns.get("created_at").filter(|c| TIMES.contains(&c.data_type.as_str()))?;
    Some(ColumnRef::new("created_at", &found.data_type))
}

/// The column that sets the due time, if there is one; never the engine's own.
pub(super) fn due(check: &mut Check<'_>, d: &Declaration, engine: &Columns) -> Option<ColumnRef> {
    if d.due.as_ref() == Some(&engine.names.due) {
        check.mistake(
            format!("due = {:?} is the engine's own column", engine.names.due),
            "leave `due` out, or rename the engine's: rename = { due_at = \"queue_due_at\" }",
        );
    }
    time(check, "due", d.due.as_ref())
}

/// The columns for the agent that works on the row, and since when.
pub(super) fn holder(check: &mut Check<'_>, d: &Declaration) -> Holder {
    let Some(h) = &d.holder else { return Holder::default() };
    Holder {
        by: simple(check, "holder.by", h.by.as_ref(), &["uuid", "text", "character varying"]),
        at: time(check, "holder.at", h.at.as_ref()),
        keep: h.keep,
    }
}
