//! Filters of a subscription: `processing_status=eq.raw`, several joined by commas.
//!
//! The database converts each value to the column's own text form when the subscription is made ([`super::tables`]). After that
//! values are compared here, so that a change costs no statement for subscribers it does not concern.

use std::cmp::Ordering;

use super::feed::pgoutput::Cell;
use super::feed::values::Shape;
use super::feed::{Change, Table};

/// More alternatives than this are refused, as Supabase does.
const MOST_VALUES: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub column: String,
    pub operator: Operator,
    /// One value, or several for `in`, in the column's text form.
    pub values: Vec<String>,
    pub shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Eq,
    Neq,
    Lt,
    Lte,
    Gt,
    Gte,
    In,
}

impl Operator {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Eq,
            "neq" => Self::Neq,
            "lt" => Self::Lt,
            "lte" => Self::Lte,
            "gt" => Self::Gt,
            "gte" => Self::Gte,
            "in" => Self::In,
            _ => return None,
        })
    }
}

/// The filter as written, before the database has checked it: column, operator, values.
pub(super) fn parse(filter: &str) -> Result<Vec<(String, Operator, Vec<String>)>, String> {
    split(filter, ',')?
        .into_iter()
        .filter(|part| !part.trim().is_empty())
        .map(|part| {
            let unreadable = || format!("`{part}` is no filter; write column=eq.value");
            let (column, rest) = part.split_once('=').ok_or_else(unreadable)?;
            let (operator, value) = rest.split_once('.').ok_or_else(unreadable)?;
            let operator = Operator::named(operator).ok_or_else(|| format!("`{operator}` is not among eq, neq, lt, lte, gt, gte, in"))?;
            let values = if operator == Operator::In {
                let list = value.strip_prefix('(').and_then(|v| v.strip_suffix(')')).ok_or_else(unreadable)?;
                split(list, ',')?.into_iter().map(unquote).collect()
            } else {
                vec![unquote(value)]
            };
            if values.len() > MOST_VALUES {
                return Err(format!("`in` takes at most {MOST_VALUES} values"));
            }
            Ok((column.trim().to_owned(), operator, values))
        })
        .collect()
}

/// Splits where neither quotes nor parentheses are open.
fn split(text: &str, at: char) -> Result<Vec<&str>, String> {
    let (mut parts, mut begin, mut depth, mut quoted, mut escaped) = (Vec::new(), 0, 0usize, false, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.checked_sub(1).ok_or_else(|| format!("`{text}` closes what it did not open"))?,
            _ if character == at && !quoted && depth == 0 => {
                parts.push(&text[begin..index]);
                begin = index + character.len_utf8();
            }
            _ => {}
        }
    }
    if quoted || depth > 0 {
        return Err(format!("`{text}` leaves a quote or a parenthesis open"));
    }
    parts.push(&text[begin..]);
    Ok(parts)
}

fn unquote(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut plain = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

impl Condition {
    /// Compares as SQL does: null is neither equal nor unequal, and a value that the log does not repeat is unknown.
    pub(super) fn holds(&self, table: &Table, change: &Change) -> bool {
        let Some(at) = table.columns.iter().position(|column| column.name == self.column) else {
            return false;
        };
        let Some(Cell::Text(text)) = change.row().get(at) else {
            return false;
        };
        let compare = |value: &String| self.compare(text, value);
        match self.operator {
            Operator::In => self.values.iter().any(|value| compare(value) == Ordering::Equal),
            operator => self.values.first().is_some_and(|value| {
                let order = compare(value);
                match operator {
                    Operator::Eq => order == Ordering::Equal,
                    Operator::Neq => order != Ordering::Equal,
                    Operator::Lt => order == Ordering::Less,
                    Operator::Lte => order != Ordering::Greater,
                    Operator::Gt => order == Ordering::Greater,
                    Operator::Gte => order != Ordering::Less,
                    Operator::In => false,
                }
            }),
        }
    }

    fn compare(&self, left: &str, right: &str) -> Ordering {
        if self.shape == Shape::Number {
            if let (Ok(left), Ok(right)) = (left.parse::<i128>(), right.parse::<i128>()) {
                return left.cmp(&right);
            }
            if let (Ok(left), Ok(right)) = (left.parse::<f64>(), right.parse::<f64>()) {
                return left.total_cmp(&right);
            }
        }
        // ISO times in one time zone sort as text.
        left.cmp(right)
    }
}

#[cfg(test)]
mod tests;
