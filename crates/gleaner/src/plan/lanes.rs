//! Kinds and classes: each has a line of its own, and each line its own place in the probe index.

use serde_json::{Value, json};

use super::check::{Check, NUMBERS, TEXT, is_one_of};
use crate::declaration::{Declaration, Priority};
use crate::introspect::{Column, literal, quote};

/// The hash that numbers the kinds of a text column.
const OF_TEXT: &str = "hashtextextended";

/// The kind column, as it stands in an index and in the acts.
pub(super) fn kind(check: &mut Check<'_>, d: &Declaration) -> Option<Value> {
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
    // Rows without a kind are of the empty kind: claimed by agents that take anything.
    let wrap = |prefix: &str| {
        if is_text && !column.not_null { format!("coalesce({prefix}{}, '')", quote(k)) } else { format!("{prefix}{}", quote(k)) }
    };
    let (data_type, hash) = if is_text { ("text", OF_TEXT) } else { (column.data_type.as_str(), "hashenumextended") };
    Some(json!({"name": k, "column": quote(k), "type": data_type, "hash": hash,
                "of": wrap("q."), "bare": wrap(""), "of_row": wrap("v_row."), "of_new": wrap("new.")}))
}

/// The lane of a row, which leads the probe indexes: one number for its kind and its class.
///
/// A number and not the kind itself, because PostgreSQL finds what follows a text in an index entry by walking through it, at every
/// comparison. The class is in the last four bits, so that the next kind is one step away, whatever its classes. Two kinds may share
/// a number: who reads a lane asks for the kind as well.
pub(super) fn lane(kind: Option<&Value>, priority: Option<&Value>) -> Option<Value> {
    let priority = priority.filter(|p| p["last"].as_u64() > Some(0));
    let hash = kind.and_then(|k| k["hash"].as_str());
    let number = |kind: Option<&str>, class: Option<&str>| match (hash, kind) {
        (Some(hash), Some(kind)) => {
            // Bytes decide what is one kind, whatever collation its column has.
            let kind = if hash == OF_TEXT { format!("{kind} collate \"C\"") } else { kind.to_owned() };
            let kind = format!("({hash}({kind}, 0) & -16)");
            Some(class.map_or_else(|| kind.clone(), |class| format!("({kind} + {class})")))
        }
        _ => class.map(str::to_owned),
    };
    let form = |name: &str| number(kind.and_then(|k| k[name].as_str()), priority.and_then(|p| p[name].as_str()));
    // Where the templates put a kind and a class of their own; `first` is the most urgent lane of a kind.
    let place = kind.map(|_| "KIND");
    Some(json!({"of": form("of")?, "bare": form("bare")?, "at": number(place, priority.map(|_| "CLASS"))?, "first": number(place, None)}))
}

/// The class of a row as an expression, most urgent first.
pub(super) fn priority(check: &mut Check<'_>, d: &Declaration) -> Option<Value> {
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
    // Without a head start a class is served before the next for good: a century is long enough.
    let head_start = match &p.head_start {
        Some(h) => check.duration("priority.head_start", h),
        None => "interval '100 years'".into(),
    };
    Some(
        json!({"name": p.column, "column": quote(&p.column), "of": of, "bare": bare, "last": conditions.len() - 1, "head_start": head_start}),
    )
}

/// What a row must fulfil to belong to each class.
fn conditions(check: &mut Check<'_>, p: &Priority, column: &Column) -> Vec<String> {
    let numbers: Option<Vec<i64>> = p.classes.iter().map(toml::Value::as_integer).collect();
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
