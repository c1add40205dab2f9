use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn nul_is_dropped_everywhere_inside() {
    let mut value = json!({"a\0": ["b\0c", {"d": "\0"}], "n": 1});
    clean(&mut value);
    assert_eq!(value, json!({"a": ["bc", {"d": ""}], "n": 1}));
}

#[test]
fn half_a_surrogate_pair_does_not_make_a_message_unreadable() {
    let read = |text: &str| parse_json(text.as_bytes()).ok();
    assert_eq!(read(r#""\ud83d\ude00""#), Some(json!("😀")));
    assert_eq!(read(r#""a\ud83d""#), Some(json!("a\u{fffd}")));
    assert_eq!(read(r#""\ude00b""#), Some(json!("\u{fffd}b")));
    assert_eq!(read(r#""\ud83d\ud83d\ude00""#), Some(json!("\u{fffd}😀")));
    assert_eq!(read(r#""\\ud83d""#), Some(json!(r"\ud83d")), "an escaped backslash is no escape");
    assert_eq!(read(r#""\ud83d\n""#), Some(json!("\u{fffd}\n")));
    assert_eq!(read(r#""\ud8"#), None);
    assert_eq!(read("\"\\"), None);
}

#[test]
fn nesting_without_end_is_an_error_and_not_an_overflow() {
    assert!(parse_json("[".repeat(5000).as_bytes()).is_err());
    assert!(parse_json("{\"a\":".repeat(5000).as_bytes()).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_json_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_json(&bytes);
    }

    #[test]
    fn what_the_parser_accepts_reads_the_same(text in r#""(\\u[0-9a-f]{4}|\\\\|\\n|[a-z])*""#) {
        if let Ok(strict) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(parse_json(text.as_bytes()).unwrap(), strict);
        } else {
            prop_assert!(parse_json(text.as_bytes()).is_ok(), "only lone surrogates make this grammar unreadable");
        }
    }
}
