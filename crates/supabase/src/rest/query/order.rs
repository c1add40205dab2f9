//! `order=a.desc.nullslast,data->>b`.

use gleaner_http::WireError;

use super::cursor::Cursor;
use super::field::{self, Field};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
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
        let mut term = Order { field: field::parse(&mut cursor)?, descending: false, nulls_first: None };
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
        if !cursor.eat(",") {
            if !cursor.rest().is_empty() {
                return Err(cursor.error("\",\", asc, desc, nullsfirst or nullslast"));
            }
            return Ok(terms);
        }
    }
}
