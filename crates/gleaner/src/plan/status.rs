//! The status column and its values.

use super::check::{Check, TEXT, is_one_of};
use super::shape::{ColumnRef, Status};
use crate::declaration::Declaration;
use crate::introspect::literal;

/// The status values as literals of the column's type, alone and in the lists the acts need, and the values that an enum lacks.
pub(super) fn status(check: &mut Check<'_>, d: &Declaration) -> Option<(Status, Vec<String>)> {
    let status = &d.status;
    let column = check.column("status.column", &status.column, &[])?;
    if column.generated {
        check.mistake(
            format!("status.column = {:?}: the column is generated, and acts could not write it", status.column),
            "name a column that is written, such as the one it is computed from",
        );
    }
    let mut missing_labels = Vec::new();
    let is_enum = !column.labels.is_empty();
    let is_text = is_one_of(&column.data_type, TEXT);
    if !is_enum && !is_text {
        check.mistake(format!("status.column = {:?}: the column is {}", status.column, column.data_type), "name a text or enum column");
    }
    let mut words = vec![("ready", &status.ready), ("running", &status.running), ("done", &status.done), ("failed", &status.failed)];
    words.extend(status.claimed.iter().map(|w| ("claimed", w)));
    words.extend(status.cancelled.iter().map(|w| ("cancelled", w)));
    for (i, (role, word)) in words.iter().enumerate() {
        if let Some((other, _)) = words[..i].iter().find(|(_, w)| w == word) {
            check.mistake(format!("status.{role} and status.{other} are both {word:?}"), "each needs a word of its own");
        }
        if is_enum && !column.labels.contains(word) {
            missing_labels.push((*word).clone());
        }
    }
    let lit = |word: &str| if is_enum { format!("{}::{}", literal(word), column.data_type) } else { literal(word) };
    let taken = status.claimed.as_deref().unwrap_or(&status.running);
    let cancelled = status.cancelled.as_deref().unwrap_or(&status.failed);
    let held =
        if let Some(claimed) = &status.claimed { format!("{}, {}", lit(claimed), lit(&status.running)) } else { lit(&status.running) };
    let waiting = format!("{}, {}", lit(&status.ready), lit(&status.failed));
    let words = Status {
        base: ColumnRef::new(&status.column, if is_enum { &column.data_type } else { "text" }),
        ready: lit(&status.ready),
        claimed: status.claimed.as_deref().map(lit),
        running: lit(&status.running),
        taken: lit(taken),
        done: lit(&status.done),
        failed: lit(&status.failed),
        cancelled: lit(cancelled),
        claimable: format!("{}, {held}, {}", lit(&status.ready), lit(&status.failed)),
        held,
        waiting,
        ended: if status.cancelled.is_some() { format!("{}, {}", lit(&status.done), lit(cancelled)) } else { lit(&status.done) },
    };
    Some((words, missing_labels))
}
