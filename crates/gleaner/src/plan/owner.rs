//! The owner of the work, and what the owner's own row allows others.

use super::check::{Check, INTEGERS};
use super::shape::{ColumnRef, Owner, in_format};
use crate::declaration::{self, Declaration, is_duration};
use crate::introspect::{Table, literal, quote};

/// The owner column, and the policy in the owner's row `o`.
pub(super) fn owner(check: &mut Check<'_>, d: &Declaration, dated: bool, owners: Option<&(&str, Option<Table>)>) -> Option<Owner> {
    let o = d.owner.as_ref()?;
    let column = check.column("owner.column", &o.column, &[]);
    let data_type = column.as_ref().map(|c| c.data_type.clone()).unwrap_or_default();
    if !dated {
        check.mistake("an owned queue must know since when a row waits", "declare `created`, the column with the row's creation time");
    }
    let base = ColumnRef::new(&o.column, &data_type);
    match owners {
        Some((name, None)) => {
            check.mistake(format!("owner.table = {name:?}: there is no such table"), "write schema.table as in psql");
            None
        }
        Some((name, Some(found))) => {
            let mut owner_check = Check::new(found);
            let owner = by_table(&mut owner_check, o, name, base);
            check.mistakes.append(&mut owner_check.mistakes);
            Some(owner)
        }
        None => Some(alike(check, o, base)),
    }
}

/// The policy when each owner has a row of its own.
fn by_table(owner_check: &mut Check<'_>, o: &declaration::Owner, table_name: &str, base: ColumnRef) -> Owner {
    let (found, data_type) = (owner_check.table, base.data_type.as_str());
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
            // No row, or null: not shared.
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
                // A number is in the unit that its column name says, or in minutes if it says none.
                _ => format!("coalesce({column} * interval '1 {unit}', interval '5 minutes')"),
            }
        }
        None => "interval '5 minutes'".into(),
    };
    Owner {
        base,
        table_text: Some(in_format(&found.sql())),
        table: Some(found.sql()),
        key: Some(quote(key.as_deref().unwrap_or("id"))),
        user: o.user.as_deref().map(quote),
        disabled: o.disabled.as_deref().map(quote),
        shared,
        open_after,
    }
}

/// The policy when all owners have the same one.
fn alike(check: &mut Check<'_>, o: &declaration::Owner, base: ColumnRef) -> Owner {
    for (key, value) in [("owner.shared", &o.shared), ("owner.user", &o.user), ("owner.disabled", &o.disabled), ("owner.key", &o.key)] {
        if value.is_some() {
            check.mistake(format!("{key} names a column of the owner table, and there is none"), "declare owner.table as well");
        }
    }
    let open_after = match &o.open_after {
        Some(text) => check.duration("owner.open_after", text),
        None => "interval '5 minutes'".into(),
    };
    Owner { base, table: None, table_text: None, key: None, user: None, disabled: None, shared: "true".into(), open_after }
}
