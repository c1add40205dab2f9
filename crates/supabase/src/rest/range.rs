//! The `Range` header: `Range: 0-9` is `limit=10`. Only for GET, as HTTP has it.

use gleaner_http::WireError;
use http::header::RANGE;
use http::{HeaderMap, Method, StatusCode};

/// Positions of the first and, if there is one, of the last wanted row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub first: u64,
    pub last: Option<u64>,
}

impl Range {
    /// What is not understood is ignored. A range that ends before it begins is refused.
    pub(super) fn parse(method: &Method, headers: &HeaderMap) -> Result<Option<Self>, WireError> {
        if method != Method::GET {
            return Ok(None);
        }
        let parsed = headers.get(RANGE).and_then(|value| read(value.to_str().ok()?));
        match parsed {
            Some(Self { first, last: Some(last) }) if first > last => {
                Err(unsatisfiable().details("The lower boundary must be lower than or equal to the upper boundary in the Range header."))
            }
            parsed => Ok(parsed),
        }
    }
}

fn read(value: &str) -> Option<Range> {
    let (first, last) = value.split_once('-')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if first.is_empty() || !is_number(first) || !is_number(last) {
        return None;
    }
    Some(Range { first: first.parse().ok()?, last: if last.is_empty() { None } else { Some(last.parse().ok()?) } })
}

pub(super) fn unsatisfiable() -> WireError {
    WireError::new(StatusCode::RANGE_NOT_SATISFIABLE, "PGRST103", "Requested range not satisfiable")
}

#[cfg(test)]
mod tests {
    use super::{Range, read};

    #[test]
    fn a_range_has_a_beginning_and_perhaps_an_end() {
        assert_eq!(read("0-9"), Some(Range { first: 0, last: Some(9) }));
        assert_eq!(read("5-"), Some(Range { first: 5, last: None }));
        for odd in ["", "-", "-5", "bytes=0-9", "a-b", "1-2-3", "99999999999999999999-"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
