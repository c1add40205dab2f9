//! The right-hand operands of filters.

use gleaner_http::WireError;

use super::Is;
use crate::rest::query::cursor::Cursor;

/// Where an expression is written decides where its value ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A whole parameter: the value extends to the end, with dots, commas and quotes.
    Parameter,
    /// One of several in `or=(…)`: the value ends at a comma or parenthesis, unless quoted or an array literal.
    List,
}

pub(super) fn value(cursor: &mut Cursor<'_>, place: Place) -> Result<String, WireError> {
    match (place, cursor.peek()) {
        (Place::Parameter, _) => Ok(cursor.take_rest().to_owned()),
        (Place::List, Some('"')) if ends_after_quotes(cursor) => cursor.quoted(),
        (Place::List, Some('{')) => braced(cursor),
        (Place::List, _) => Ok(cursor.take_while(|c| !matches!(c, ',' | ')')).to_owned()),
    }
}

/// `(a,"b,c",d)`; nothing between the parentheses is an empty list.
pub(super) fn list(cursor: &mut Cursor<'_>) -> Result<Vec<String>, WireError> {
    cursor.skip_spaces();
    cursor.expect("(")?;
    cursor.skip_spaces();
    if cursor.eat(")") {
        return Ok(Vec::new());
    }
    let mut values = Vec::new();
    loop {
        values.push(if cursor.peek() == Some('"') && ends_after_quotes(cursor) {
            cursor.quoted()?
        } else {
            cursor.take_while(|c| !matches!(c, ',' | ')')).to_owned()
        });
        if !cursor.eat(",") {
            cursor.expect(")")?;
            return Ok(values);
        }
    }
}

/// Whether the value ends where its quotes end. Otherwise the quotes belong to it, and it ends as values without quotes do.
fn ends_after_quotes(cursor: &Cursor<'_>) -> bool {
    let mut ahead = cursor.clone();
    ahead.quoted().is_ok() && matches!(ahead.peek(), None | Some(',' | ')' | ' '))
}

pub(super) fn is(cursor: &mut Cursor<'_>) -> Result<Is, WireError> {
    const WORDS: [(&str, Is); 5] =
        [("null", Is::Null), ("not_null", Is::NotNull), ("true", Is::True), ("false", Is::False), ("unknown", Is::Unknown)];
    let expected = cursor.error("null, not_null, true, false or unknown");
    let word = cursor.take_while(|c| c.is_ascii_alphabetic() || c == '_').to_ascii_lowercase();
    WORDS.iter().find(|(name, _)| *name == word).map(|(_, is)| *is).ok_or(expected)
}

/// An array literal or JSON object, up to the brace that closes it.
fn braced(cursor: &mut Cursor<'_>) -> Result<String, WireError> {
    let rest = cursor.rest();
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    let literal = &rest[..=at];
                    cursor.eat(literal);
                    return Ok(literal.to_owned());
                }
            }
            _ => {}
        }
    }
    Err(cursor.error("a closing brace"))
}
