//! The engine's own columns, and the table's that it reads and writes.

use serde_json::{Map, Value, json};

use super::EngineColumn;
use super::check::{Check, INTEGERS, NUMBERS, TIMES, is_one_of};
use crate::declaration::Declaration;
use crate::introspect::{literal, quote};

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
pub(super) struct Engine {
    pub(super) columns: Vec<EngineColumn>,
    /// Quoted names by role.
    pub(super) quoted: Map<String, Value>,
    /// Bare names by role.
    pub(super) names: Map<String, Value>,
}

impl Engine {
    pub(super) fn column(&self, role: &str) -> String {
        self.quoted.get(role).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

pub(super) fn engine(check: &mut Check<'_>, d: &Declaration) -> Engine {
    let table = check.table;
    let mut columns = Vec::new();
    let mut quoted = Map::new();
    let mut names = Map::new();
    for (role, default_name, definition, default) in COLUMNS {
        if *role == "open" && d.owner.is_none() {
            continue;
        }
        if let ("attempts", Some(own)) = (*role, &d.attempts) {
            check.column("attempts", own, INTEGERS);
            quoted.insert((*role).into(), quote(own).into());
            names.insert((*role).into(), own.clone().into());
            continue;
        }
        let column = d.rename.get(*default_name).cloned().unwrap_or_else(|| (*default_name).to_owned());
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
        quoted.insert((*role).into(), quote(&column).into());
        names.insert((*role).into(), column.clone().into());
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
    Engine { columns, quoted, names }
}

/// A declared column: {name, column, type, numeric}.
pub(super) fn simple(check: &mut Check<'_>, key: &str, column: Option<&String>, types: &[&str]) -> Option<Value> {
    let column = column?;
    let found = check.column(key, column, types)?;
    Some(json!({"name": column, "column": quote(column), "type": found.data_type, "numeric": is_one_of(&found.data_type, NUMBERS)}))
}

/// A column, or a place inside a jsonb column: {name, column, type, path}. Without `bare` types only a place will do.
pub(super) fn place(check: &mut Check<'_>, key: &str, place: Option<&String>, bare: &[&str]) -> Option<Value> {
    let place = place?;
    match place.split_once('.') {
        Some((column, rest)) => {
            check.column(key, column, &["jsonb"])?;
            let path = literal(&format!("{{{}}}", rest.replace('.', ",")));
            Some(json!({"column": quote(column), "type": "jsonb", "path": path, "name": column}))
        }
        None if bare.is_empty() => {
            check.mistake(format!("{key} = {place:?}"), "name a place inside a jsonb column, such as \"metadata.recovery_count\"");
            None
        }
        None => {
            let found = check.column(key, place, bare)?;
            Some(json!({"column": quote(place), "type": found.data_type, "path": null, "name": place}))
        }
    }
}

/// A column with a time: {name, column, type}.
pub(super) fn time(check: &mut Check<'_>, key: &str, column: Option<&String>) -> Option<Value> {
    let column = column?;
    let found = check.column(key, column, TIMES)?;
    Some(json!({"name": column, "column": quote(column), "type": found.data_type}))
}

/// When a row came to be: the declared column, or `created_at` where there is one.
pub(super) fn created(check: &mut Check<'_>, d: &Declaration) -> Option<Value> {
    if d.created.is_some() {
        return time(check, "created", d.created.as_ref());
    }
    let found = check.table.columns.get("created_at").filter(|c| TIMES.contains(&c.data_type.as_str()))?;
    Some(json!({"name": "created_at", "column": "created_at", "type": found.data_type}))
}

/// The column that appoints the time, if there is one; never the engine's own.
pub(super) fn due(check: &mut Check<'_>, d: &Declaration, engine: &Engine) -> Option<Value> {
    if d.due.as_deref() == engine.names.get("due").and_then(Value::as_str) {
        check.mistake(
            format!("due = {:?} is the engine's own column", d.due.as_deref().unwrap_or_default()),
            "leave `due` out, or rename the engine's: rename = { due_at = \"queue_due_at\" }",
        );
    }
    time(check, "due", d.due.as_ref())
}

/// Who works on the row, and since when: {by, at, keep}.
pub(super) fn holder(check: &mut Check<'_>, d: &Declaration) -> Value {
    let mut holder = json!({"by": null, "at": null});
    if let Some(h) = &d.holder {
        holder["keep"] = h.keep.into();
        holder["by"] = simple(check, "holder.by", h.by.as_ref(), &["uuid", "text", "character varying"]).unwrap_or_default();
        holder["at"] = time(check, "holder.at", h.at.as_ref()).unwrap_or_default();
    }
    holder
}
