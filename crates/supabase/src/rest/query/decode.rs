//! Form encoding with percent and plus: a space is `+`, and a plus is `%2B`.

use gleaner_http::WireError;
use http::StatusCode;

/// Names and values in their original order. Names may repeat.
pub(crate) type Parameters = Vec<(String, String)>;

/// Decodes a query string.
pub(crate) fn decode(query: Option<&str>) -> Result<Parameters, WireError> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode_one(name, true)?, decode_one(value, true)?))
        })
        .collect()
}

/// Decodes one segment of a path, in which a plus is a plus.
pub(crate) fn decode_segment(segment: &str) -> Result<String, WireError> {
    decode_one(segment, false)
}

fn decode_one(text: &str, form: bool) -> Result<String, WireError> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'+' if form => decoded.push(b' '),
            b'%' => match (hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
                (Some(high), Some(low)) => {
                    decoded.push(high << 4 | low);
                    at += 2;
                }
                // A lone percent sign means itself.
                _ => decoded.push(b'%'),
            },
            byte => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8(decoded).map_err(|_| {
        WireError::new(StatusCode::BAD_REQUEST, "PGRST100", "the address is not UTF-8").details("Percent-encoded bytes must be UTF-8 text.")
    })
}

fn hex(byte: Option<&u8>) -> Option<u8> {
    char::from(*byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn a_plus_is_a_space_and_an_encoded_plus_a_plus() {
        let decoded = decode(Some("name=eq.US+Support+%2B1&x=%C3%A9&lone=100%&flag&&a=b=c")).unwrap();
        let expected = [("name", "eq.US Support +1"), ("x", "é"), ("lone", "100%"), ("flag", ""), ("a", "b=c")];
        assert_eq!(decoded, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert_eq!(decode(Some("a=%ff")).unwrap_err().code, "PGRST100");
    }
}
