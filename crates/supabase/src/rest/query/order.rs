//! `order=a.desc.nullslast,data->>b,sales(last_name)`.

use gleaner_http::WireError;

use super::cursor::Cursor;
use super::field::{self, Field};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The embedded resource whose column this is.
    pub embed: Option<String>,
    pub field: Field,
    pub descending: bool,
    /// `None` means SQL's default: last when ascending, first when descending.
    pub nulls_first: Option<bool>,
}

pub(super) fn parse(value: &str) -> Result<Vec<Order>, WireError> {
    let mut cursor = Cursor::new("order", value);
    let mut terms = Vec::new();
    loop {
        cursor.skip_spaces();
        let (embed, field) = parse_field(&mut cursor)?;
        let mut term = Order { embed, field, descending: false, nulls_first: None };
        if cursor.eat(".desc") {
            term.descending = true;
        } else {
            cursor.eat(".asc");
        }
        if cursor.eat(".nullsfirst") {
            term.nulls_first = Some(true);
        } else if cursor.eat(".nullslast") {
            term.nulls_first = Some(false);
        }
        terms.push(term);
        cursor.skip_spaces();
        if !cursor.eat(",") {
            if !cursor.rest().is_empty() {
                return Err(cursor.error("\",\", asc, desc, nullsfirst or nullslast"));
            }
            return Ok(terms);
        }
    }
}

/// `column`, or `rel(column)`.
fn parse_field(cursor: &mut Cursor<'_>) -> Result<(Option<String>, Field), WireError> {
    let field = field::parse(cursor)?;
    if !field.path.is_empty() || !cursor.eat("(") {
        return Ok((None, field));
    }
    let inner = field::parse(cursor)?;
    cursor.expect(")")?;
    Ok((Some(field.name), inner))
}
