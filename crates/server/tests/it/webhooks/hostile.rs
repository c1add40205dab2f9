//! No input to the native routes causes a server error. Every finding of schemathesis becomes a line here.

use anyhow::Result;
use gleaner_http::Role;

use crate::webhooks::support::world;

#[tokio::test]
async fn bad_input_on_native_routes_is_refused_and_never_our_failure() -> Result<()> {
    let world = world().await?;
    let key = format!("Bearer {}", gleaner_server::load_access(&world.home.0)?.project_key(Role::Service));
    let long = "x".repeat(100_000);
    for (method, path, body) in [
        ("POST", "/functions/v1/fetch-gmail-updates", r#"{"channel": "\u0000"}"#.to_owned()),
        ("POST", "/v1/queues/%00/claim", r#"{"agent": "a"}"#.to_owned()),
        ("POST", "/v1/queues/no%FFqueue/claim", r#"{"agent": "a"}"#.to_owned()),
        ("POST", "/v1/queues/jobs/claim", r#"{"agent": "\u0000"}"#.to_owned()),
        ("POST", "/v1/queues/jobs/claim", r#"{"agent": "a", "hold_seconds": 1e300}"#.to_owned()),
        ("POST", "/v1/queues/jobs/claim", r#"{"agent": "a", "hold_seconds": 1e18}"#.to_owned()),
        ("POST", "/v1/queues/jobs/claim", r#"{"agent": "a", "tenant": "t"}"#.to_owned()),
        ("POST", "/v1/queues/activities/claim", r#"{"agent": "a", "owner": "nobody"}"#.to_owned()),
        ("POST", "/v1/queues/jobs/enqueue", r#"{"items": [{"payload": "\u0000"}]}"#.to_owned()),
        ("POST", "/v1/queues/jobs/enqueue", r#"{"items": [{"": 1}]}"#.to_owned()),
        ("POST", "/v1/queues/jobs/enqueue", r#"{"items": [{"due_at": {"a": 1}}]}"#.to_owned()),
        ("POST", "/v1/queues/jobs/complete", r#"{"key": "no number", "lease": 1}"#.to_owned()),
        ("POST", "/v1/queues/jobs/complete", r#"{"key": 1, "lease": 99999999999999999999}"#.to_owned()),
        ("POST", "/v1/queues/jobs/snooze", r#"{"key": 1, "lease": 1, "seconds": 1e19}"#.to_owned()),
        ("POST", "/v1/queues/jobs/fail", r#"{"key": 1, "lease": 1, "message": "\u0000"}"#.to_owned()),
        ("POST", "/v1/queues/jobs/cancel", r#"{"matching": {"no such column": 1}}"#.to_owned()),
        ("POST", "/v1/queues/jobs/requeue", r#"{"keys": ["x"]}"#.to_owned()),
        ("POST", "/v1/queues/jobs/assign", r#"{"keys": [1], "owner": 1}"#.to_owned()),
        ("GET", "/v1/queues/jobs/items/%00/explain", String::new()),
        ("GET", "/v1/queues/jobs/items/x/explain?owner=%FF", String::new()),
        ("GET", "/v1/channels/%00", String::new()),
        ("DELETE", "/v1/channels/%00", String::new()),
        ("PATCH", "/v1/channels/%00", r#"{"name": "x"}"#.to_owned()),
        ("POST", "/v1/channels", r#"{"name": "\u0000", "provider": "generic", "settings": {"scheme": "none"}}"#.to_owned()),
        ("POST", "/v1/channels", r#"{"name": "n", "provider": "generic", "settings": {"scheme": "none"}, "owner": "\u0000"}"#.to_owned()),
        (
            "POST",
            "/v1/channels",
            r#"{"name": "n", "provider": "generic", "settings": {"scheme": "none"}, "owner": 9223372036854775807}"#.to_owned(),
        ),
        ("POST", "/v1/channels", r#"{"name": "n", "provider": "generic", "settings": {"scheme": "none", "a": "\u0000"}}"#.to_owned()),
        ("GET", "/v1/contacts/unmatched?after=0000-00-00T00:00:00.000000Z_00000000-0000-4000-8000-000000000000", String::new()),
        ("POST", "/v1/contacts/link", r#"{"activity": "x", "contact": 1}"#.to_owned()),
        ("GET", "/v1/media/x/0", String::new()),
        ("GET", "/v1/media/1f0c7a52-0000-4000-8000-000000000001/99999999999999999999", String::new()),
    ] {
        let answer = world.send(method, path, &[("authorization", &key)], body.as_bytes()).await?;
        assert!((400..500).contains(&answer.status), "{method} {path} {body}: {} {}", answer.status, answer.json());
    }
    // Large but valid: accepted, or refused for its size.
    for body in [
        format!(r#"{{"agent": "{long}"}}"#),
        format!(r#"{{"agent": "a", "kinds": ["{long}"]}}"#),
        format!(r#"{{"agent": "a", "request": "1f0c7a52-0000-4000-8000-000000000001", "kinds": ["{long}"]}}"#),
    ] {
        let answer = world.send("POST", "/v1/queues/jobs/claim", &[("authorization", &key)], body.as_bytes()).await?;
        assert!(answer.status < 500, "{} {}", answer.status, answer.json());
    }
    let large = format!(r#"{{"items": [{{"kind": "{long}", "payload": 1}}]}}"#);
    let answer = world.send("POST", "/v1/queues/jobs/enqueue", &[("authorization", &key)], large.as_bytes()).await?;
    assert!(answer.status < 500, "{} {}", answer.status, answer.json());
    Ok(())
}
