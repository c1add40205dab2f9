use super::*;

fn status(code: u16, headers: &[(&'static str, &str)]) -> Failure {
    let headers = headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().expect("a value"))).collect();
    of_status(MODEL, "the model", StatusCode::from_u16(code).expect("a status"), &headers, r#"{"error": {"message": "no"}}"#)
}

#[test]
fn what_may_pass_is_tried_again_and_what_stays_is_not() {
    for code in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        assert!(status(code, &[]).retryable, "{code}");
    }
    for code in [400, 401, 403, 404, 413, 415, 422] {
        assert!(!status(code, &[]).retryable, "{code}");
    }
    assert_eq!(status(404, &[]).message, "the model answered 404 Not Found: no");
}

#[test]
fn the_time_named_by_the_other_side_is_kept() {
    assert_eq!(status(429, &[("retry-after", "17")]).retry_in, Some(Duration::from_secs(17)));
    assert_eq!(status(429, &[("retry-after", "99999999")]).retry_in, Some(LONGEST_WAIT));
    assert_eq!(status(400, &[("retry-after", "17")]).retry_in, None, "it is not tried again at all");
    let date = (chrono::Utc::now() + chrono::TimeDelta::seconds(90)).to_rfc2822();
    let wait = status(503, &[("retry-after", &date)]).retry_in.expect("a wait").as_secs();
    assert!((80..=90).contains(&wait), "{wait}");
}
