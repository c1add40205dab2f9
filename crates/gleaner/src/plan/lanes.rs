//! Kinds and classes: each combination is a lane, with its own section of the probe index.

use super::check::{Check, NUMBERS, TEXT, is_one_of};
use super::shape::{ColumnRef, Kind, Lane, Priority};
use crate::declaration::{self, Declaration};
use crate::introspect::{Column, literal, quote};

/// The hash that numbers the kinds of a text column.
const OF_TEXT: &str = "hashtextextended";

/// The kinds, the priorities, and the lanes they form together.
pub(super) fn lanes(check: &mut Check<'_>, d: &Declaration) -> (Option<Kind>, Option<Priority>, Option<Lane>) {
    let (kind, priority) = (kind(check, d), priority(check, d));
    let lane = lane(kind.as_ref(), priority.as_ref());
    (kind, priority, lane)
}

/// The kind column, as used in an index and in the acts.
fn kind(check: &mut Check<'_>, d: &Declaration) -> Option<Kind> {
    let (k, table) = (d.kind.as_deref()?, check.table);
    let column = check.column("kind", k, &[])?;
    let is_text = is_one_of(&column.data_type, TEXT);
    if !is_text && column.labels.is_empty() {
        check.mistake(format!("kind = {k:?}: the column is {}", column.data_type), "name a text or enum column");
    } else if !is_text && !column.not_null {
        check.mistake(
            format!("kind = {k:?}: an enum that may be null cannot lead an index of kinds"),
            format!("alter table {} alter column {} set not null", table.sql(), quote(k)),
        );
    }
    // Rows without a kind have the empty kind: agents that take any kind claim them.
    let wrap = |prefix: &str| {
        if is_text && !column.not_null { format!("coalesce({prefix}{}, '')", quote(k)) } else { format!("{prefix}{}", quote(k)) }
    };
    let (data_type, hash) = if is_text { ("text", OF_TEXT) } else { (column.data_type.as_str(), "hashenumextended") };
    Some(Kind { base: ColumnRef::new(k, data_type), hash, of: wrap("q."), bare: wrap(""), of_row: wrap("v_row."), of_new: wrap("new.") })
}

/// The lane of a row, which is first in the probe indexes: one number for its kind and its class.
///
/// It is a number and not the kind itself, because to find the column after a text in an index entry PostgreSQL has to walk
/// through the text, at every comparison. The class is in the last four bits, so that the next kind is one step away, whatever
/// its classes. Two kinds may share a number, so a query on a lane tests the kind as well.
fn lane(kind: Option<&Kind>, priority: Option<&Priority>) -> Option<Lane> {
    let priority = priority.filter(|p| p.last > 0);
    let hash = kind.map(|k| k.hash);
    let number = |kind: Option<&str>, class: Option<&str>| match (hash, kind) {
        (Some(hash), Some(kind)) => {
            // Kinds are compared by bytes, whatever collation the column has.
            let kind = if hash == OF_TEXT { format!("{kind} collate \"C\"") } else { kind.to_owned() };
            let kind = format!("({hash}({kind}, 0) & -16)");
            Some(class.map_or_else(|| kind.clone(), |class| format!("({kind} + {class})")))
        }
        _ => class.map(str::to_owned),
    };
    // Placeholders that the templates replace with a kind and a class; `first` is the most urgent lane of a kind.
    let place = kind.map(|_| "KIND");
    Some(Lane {
        of: number(kind.map(|k| k.of.as_str()), priority.map(|p| p.of.as_str()))?,
        bare: number(kind.map(|k| k.bare.as_str()), priority.map(|p| p.bare.as_str()))?,
        at: number(place, priority.map(|_| "CLASS"))?,
        first: number(place, None),
    })
}

/// The class of a row as an expression, most urgent first.
fn priority(check: &mut Check<'_>, d: &Declaration) -> Option<Priority> {
    let p = d.priority.as_ref()?;
    let column = check.column("priority.column", &p.column, &[])?;
    if p.classes.is_empty() || p.classes.len() > 10 {
        check.mistake("priority.classes", "list between one and ten classes, the most urgent first");
        return None;
    }
    let conditions = conditions(check, p, &column);
    let case = |prefix: &str| {
        let mut sql = String::from("(case");
        for (i, condition) in conditions[..conditions.len() - 1].iter().enumerate() {
            sql += &format!(" when {prefix}{} {condition} then {i}", quote(&p.column));
        }
        sql + &format!(" else {} end)", conditions.len() - 1)
    };
    let bare = if conditions.len() == 1 { "0".to_owned() } else { case("") };
    let of = if conditions.len() == 1 { "0".to_owned() } else { case("q.") };
    // Without a head start a class is always served before the next: a century is long enough.
    let head_start = match &p.head_start {
        Some(h) => check.duration("priority.head_start", h),
        None => "interval '100 years'".into(),
    };
    Some(Priority { base: ColumnRef::new(&p.column, &column.data_type), of, bare, last: conditions.len() - 1, head_start })
}

/// The condition that a row of each class meets.
fn conditions(check: &mut Check<'_>, p: &declaration::Priority, column: &Column) -> Vec<String> {
    let numbers: Option<Vec<i64>> = p.classes.iter().map(serde_json::Value::as_i64).collect();
    if let Some(numbers) = numbers {
        let falling = numbers.windows(2).all(|w| w[0] > w[1]);
        let rising = numbers.windows(2).all(|w| w[0] < w[1]);
        if !is_one_of(&column.data_type, NUMBERS) {
            check.mistake(
                format!("priority.classes are numbers, and {:?} is {}", p.column, column.data_type),
                "list its words, or name a column of numbers",
            );
        }
        if !falling && !rising {
            check.mistake("priority.classes", "numbers must rise or fall from the most urgent to the least");
        }
        numbers.iter().map(|n| format!("{} {n}", if rising && numbers.len() > 1 { "<=" } else { ">=" })).collect()
    } else {
        for class in &p.classes {
            match class.as_str() {
                Some(word) if !column.labels.is_empty() && !column.labels.iter().any(|l| l == word) => check.mistake(
                    format!("priority.classes: {word:?} is no value of {}", column.data_type),
                    format!("its values are {}", column.labels.join(", ")),
                ),
                Some(_) if column.labels.is_empty() && !is_one_of(&column.data_type, TEXT) => check.mistake(
                    format!("priority.classes are words, and {:?} is {}", p.column, column.data_type),
                    "list numbers, or name a text or enum column",
                ),
                Some(_) => {}
                None => check.mistake(format!("priority.classes: {class}"), "list numbers or words, not both"),
            }
        }
        let cast = if column.labels.is_empty() { String::new() } else { format!("::{}", column.data_type) };
        p.classes.iter().map(|c| format!("= {}{cast}", literal(c.as_str().unwrap_or_default()))).collect()
    }
}
