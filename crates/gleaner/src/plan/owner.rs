//! Who the work belongs to, and what the owner's own row allows others.

use serde_json::{Value, json};

use super::check::{Check, INTEGERS};
use crate::declaration::{Declaration, Owner, is_duration};
use crate::introspect::{Table, literal, quote};

/// {name, column, type, table, key, user, shared, open_after}; the last two are expressions over the owner's row `o`.
pub(super) fn owner(check: &mut Check<'_>, d: &Declaration, dated: bool, owners: Option<&(&str, Option<Table>)>) -> Option<Value> {
    let o = d.owner.as_ref()?;
    let column = check.column("owner.column", &o.column, &[]);
    let data_type = column.as_ref().map(|c| c.data_type.clone()).unwrap_or_default();
    if !dated {
        check.mistake("an owned queue must know since when a row waits", "declare `created`, the column with the row's creation time");
    }
    let mut out = json!({"name": o.column, "column": quote(&o.column), "type": data_type, "table": null, "key": null, "user": null});
    match owners {
        Some((name, None)) => {
            check.mistake(format!("owner.table = {name:?}: there is no such table"), "write schema.table as in psql");
            return None;
        }
        Some((name, Some(found))) => {
            let mut owner_check = Check::new(found);
            by_table(&mut owner_check, o, name, &data_type, &mut out);
            check.mistakes.append(&mut owner_check.mistakes);
        }
        None => alike(check, o, &mut out),
    }
    Some(out)
}

/// Each owner has a row that says what it allows.
fn by_table(owner_check: &mut Check<'_>, o: &Owner, table_name: &str, data_type: &str, out: &mut Value) {
    let found = owner_check.table;
    let key = o.key.clone().or_else(|| if found.primary_key.len() == 1 { Some(found.primary_key[0].clone()) } else { None });
    match &key {
        Some(key) => {
            let found = owner_check.column("owner.key", key, &[]).map(|k| k.data_type).unwrap_or_default();
            let alike = found == data_type || INTEGERS.contains(&found.as_str()) && INTEGERS.contains(&data_type);
            if !alike && !found.is_empty() && !data_type.is_empty() {
                owner_check.mistake(
                    format!("owner.column = {:?} is {data_type}, the key of {table_name} is {found}", o.column),
                    "declare owner.key, the column it refers to",
                );
            }
        }
        None => owner_check.mistake(format!("{table_name} has no single-column primary key"), "declare owner.key"),
    }
    if let Some(user) = &o.user {
        owner_check.column("owner.user", user, &["uuid"]);
    }
    if let Some(disabled) = &o.disabled {
        owner_check.column("owner.disabled", disabled, &["boolean"]);
        if o.user.is_none() {
            owner_check.mistake("owner.disabled is about users, and none are declared", "declare owner.user as well");
        }
    }
    let shared = match &o.shared {
        Some(shared) => {
            owner_check.column("owner.shared", shared, &["boolean"]);
            // No row, or none yet said: not shared.
            format!("coalesce(o.{}, false)", quote(shared))
        }
        None => format!("(o.{} is not null)", quote(key.as_deref().unwrap_or("id"))),
    };
    let open_after = match &o.open_after {
        Some(text) if is_duration(text) => format!("interval {}", literal(text)),
        Some(threshold) => {
            let info = owner_check.column(
                "owner.open_after",
                threshold,
                &["interval", "smallint", "integer", "bigint", "numeric", "double precision"],
            );
            let column = format!("o.{}", quote(threshold));
            let unit = ["second", "minute", "hour", "day"].into_iter().find(|u| threshold.contains(u)).unwrap_or("minute");
            match info {
                Some(info) if info.data_type == "interval" => format!("coalesce({column}, interval '5 minutes')"),
                // Numbers count what their name says, minutes where it says nothing.
                _ => format!("coalesce({column} * interval '1 {unit}', interval '5 minutes')"),
            }
        }
        None => "interval '5 minutes'".into(),
    };
    out["table"] = found.sql().into();
    out["key"] = quote(key.as_deref().unwrap_or("id")).into();
    out["user"] = o.user.as_deref().map_or(Value::Null, |u| quote(u).into());
    out["disabled"] = o.disabled.as_deref().map_or(Value::Null, |d| quote(d).into());
    out["shared"] = shared.into();
    out["open_after"] = open_after.into();
}

/// All owners are alike.
fn alike(check: &mut Check<'_>, o: &Owner, out: &mut Value) {
    for (key, value) in [("owner.shared", &o.shared), ("owner.user", &o.user), ("owner.disabled", &o.disabled), ("owner.key", &o.key)] {
        if value.is_some() {
            check.mistake(format!("{key} names a column of the owner table, and there is none"), "declare owner.table as well");
        }
    }
    out["shared"] = "true".into();
    out["open_after"] = match &o.open_after {
        Some(text) => check.duration("owner.open_after", text),
        None => "interval '5 minutes'".into(),
    }
    .into();
}
