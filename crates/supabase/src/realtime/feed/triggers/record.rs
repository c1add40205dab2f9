//! Rows in PostgreSQL's text form, `(1,"a, b",)`, as cells.

use crate::realtime::feed::pgoutput::Cell;

/// A row as far as its text goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub cells: Vec<Cell>,
    /// Whether the text is complete. Of old rows only the beginning is kept.
    pub is_whole: bool,
}

/// Returns `None` for text that is not a row. A value that is cut off is left out, because half of it would be a different value.
pub(super) fn parse(text: &str) -> Option<Record> {
    let mut rest = text.strip_prefix('(')?;
    let mut cells = Vec::new();
    loop {
        let mut value = String::new();
        // An empty string is written as two quotes. No text at all is null.
        let mut is_null = true;
        let end = loop {
            let Some(at) = rest.find(['"', ',', ')', '\\']) else {
                return Some(Record { cells, is_whole: false });
            };
            value.push_str(&rest[..at]);
            is_null &= at == 0;
            let found = rest.as_bytes()[at];
            rest = &rest[at + 1..];
            match found {
                b'"' => {
                    is_null = false;
                    let Some(after) = quoted(rest, &mut value) else {
                        return Some(Record { cells, is_whole: false });
                    };
                    rest = after;
                }
                b'\\' => return None,
                end => break end,
            }
        };
        cells.push(if is_null { Cell::Null } else { Cell::Text(value) });
        if end == b')' {
            return rest.is_empty().then_some(Record { cells, is_whole: true });
        }
    }
}

/// Reads up to the closing quote. Quotes and backslashes inside are doubled. Returns what follows, or `None` when the text is cut
/// off.
fn quoted<'a>(mut rest: &'a str, value: &mut String) -> Option<&'a str> {
    loop {
        let at = rest.find(['"', '\\'])?;
        value.push_str(&rest[..at]);
        let found = &rest[at..=at];
        rest = &rest[at + 1..];
        match rest.strip_prefix(found) {
            Some(after) => {
                value.push_str(found);
                rest = after;
            }
            // The last character of a text that was cut off may be the first of a doubled pair.
            None if found == "\"" && !rest.is_empty() => return Some(rest),
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Cell {
        Cell::Text(value.to_owned())
    }

    #[test]
    fn a_row_reads_as_it_was_written() {
        let row = parse(r#"(1,,"","a, (b)","say ""hi"" \\o/",{x},"{""k"": ""v""}")"#).expect("a row");
        let cells = vec![text("1"), Cell::Null, text(""), text("a, (b)"), text(r#"say "hi" \o/"#), text("{x}"), text(r#"{"k": "v"}"#)];
        assert_eq!(row, Record { cells, is_whole: true });
        assert_eq!(parse("()").map(|row| row.cells), Some(vec![Cell::Null]), "one column, null");
    }

    #[test]
    fn of_a_row_that_is_cut_off_the_whole_values_are_read_and_no_half_one() {
        let whole = r#"(12,"a ""b"", c",héllo,)"#;
        let cells = parse(whole).expect("a row").cells;
        for (end, _) in whole.char_indices().skip(1) {
            let cut = parse(&whole[..end]).expect("the beginning of a row");
            assert!(!cut.is_whole && cut.cells.len() < cells.len() && cells.starts_with(&cut.cells), "{}: {cut:?}", &whole[..end]);
        }
        for garbage in ["", "x", "(1) ", "(a\\b)"] {
            assert_eq!(parse(garbage), None, "{garbage}");
        }
    }
}
