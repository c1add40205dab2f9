//! Lists of column names: `"a","b"`, `a,b`.

use gleaner_http::WireError;

use super::cursor::Cursor;

pub(super) fn parse(what: &'static str, value: &str) -> Result<Vec<String>, WireError> {
    let mut cursor = Cursor::new(what, value);
    let mut names = Vec::new();
    loop {
        cursor.skip_spaces();
        names.push(cursor.name()?);
        cursor.skip_spaces();
        if !cursor.eat(",") {
            cursor.end()?;
            return Ok(names);
        }
    }
}
