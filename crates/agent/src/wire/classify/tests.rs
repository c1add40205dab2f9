use super::*;

#[test]
fn transient_errors_are_distinguished_from_permanent_ones() {
    for (status, code, renewable) in [
        (None, None, false),
        (Some(408), None, false),
        (Some(429), Some("over_request_rate_limit"), false),
        (Some(500), Some("XX000"), false),
        (Some(500), Some("40001"), false),
        (Some(409), Some("40P01"), false),
        (Some(400), Some("55P03"), false),
        (Some(502), None, false),
        (Some(503), Some("PGRST001"), false),
        (Some(504), Some("PGRST003"), false),
        (Some(500), Some("57014"), false),
        (Some(522), None, false),
        (Some(540), None, false),
        (Some(401), Some("PGRST301"), true),
        (Some(401), Some("PGRST303"), true),
        (Some(403), Some("bad_jwt"), true),
    ] {
        assert!(classify(status, code, renewable).transient, "{status:?} {code:?}");
    }
    for (status, code, renewable, says) in [
        (401, Some("PGRST301"), false, "SUPABASE_ANON_KEY"),
        (401, Some("PGRST303"), false, "SUPABASE_ANON_KEY"),
        (401, Some("PGRST302"), true, "SUPABASE_ANON_KEY"),
        (401, None, true, "SUPABASE_ANON_KEY"),
        (403, Some("42501"), true, "gleaner keys add"),
        (404, Some("P0002"), true, "gleaner queues"),
        (404, Some("PGRST202"), true, "migrate --supabase"),
        (404, None, true, "URL"),
        (406, Some("PGRST106"), true, "migrate --supabase"),
        (400, Some("refresh_token_already_used"), true, "agent login"),
        (400, Some("invalid_credentials"), true, "password"),
        (301, None, true, "leads"),
        (413, None, true, "too large"),
    ] {
        let verdict = classify(Some(status), code, renewable);
        assert!(!verdict.transient, "{status} {code:?}");
        assert!(verdict.advice.is_some_and(|advice| advice.contains(says)), "{status} {code:?}: {verdict:?}");
    }
    assert_eq!(classify(Some(400), Some("22P02"), true), Verdict { transient: false, advice: None });
    assert_eq!(classify(Some(422), None, true), Verdict { transient: false, advice: None });
}

#[test]
fn an_error_keeps_the_servers_message_and_says_what_to_do() {
    let body = serde_json::json!({"code": "42501", "message": "this key may not work the queue jobs", "details": null, "hint": "A key is made for its queues"});
    let response = refused("claim in jobs", 403, &body, false).to_string();
    assert!(response.starts_with("claim in jobs: this key may not work the queue jobs (403)"), "{response}");
    assert!(response.contains("A key is made for its queues") && response.contains("gleaner keys add"), "{response}");
}
