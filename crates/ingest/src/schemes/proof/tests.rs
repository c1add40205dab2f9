use std::time::{Duration, SystemTime};

use http::Method;

use super::*;

fn at(seconds: u64, timestamp: &str) -> bool {
    let request = Request {
        method: &Method::POST,
        target: "/",
        headers: &HeaderMap::new(),
        body: b"",
        client: None,
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        public_base: "",
    };
    in_time(timestamp, &request).is_ok()
}

#[test]
fn the_window_is_five_minutes_either_way() {
    assert!(at(1_700_000_000, "1699999700") && at(1_700_000_000, "1700000300"));
    assert!(!at(1_700_000_000, "1699999699") && !at(1_700_000_000, "1700000301"));
}

#[test]
fn a_time_that_is_no_number_is_far_away() {
    let far =
        ["", "-", "+1700000000", " 1700000000", "1700000000.0", "１７００００００００", "9223372036854775808", "99999999999999999999999"];
    for timestamp in far {
        assert!(!at(1_700_000_000, timestamp), "{timestamp}");
    }
    assert!(!at(1_700_000_000, &i64::MIN.to_string()) && !at(1_700_000_000, &i64::MAX.to_string()));
    assert!(at(0, "-300"), "a time before 1970 is a time");
}

#[test]
fn an_empty_secret_fits_nothing() {
    let signature = crypt::hmac_sha256(b"", &[b"body"]);
    assert!(!any_hmac([""], &[b"body"], &[signature]));
    assert!(any_hmac(["", "k"], &[b"body"], &[signature, crypt::hmac_sha256(b"k", &[b"body"])]));
}

#[test]
fn only_lower_case_hexadecimal_of_the_right_length_is_a_signature() {
    assert!(lower_hex(&"ab".repeat(32)).is_some());
    assert!(lower_hex(&"AB".repeat(32)).is_none());
    assert!(lower_hex(&"ab".repeat(31)).is_none() && lower_hex(&"ab".repeat(33)).is_none() && lower_hex("").is_none());
}
