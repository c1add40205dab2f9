//! Keys, joins, heartbeats and leaving.

use anyhow::Result;
use serde_json::{Value, json};

use crate::realtime::client::{anon, service, stage, user};

#[tokio::test]
async fn a_request_that_is_no_upgrade_gets_an_error_in_the_common_shape() -> Result<()> {
    let stage = stage().await?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let answer = reqwest::get(format!("http://{}/realtime/v1/websocket", stage.address)).await?;
    assert_eq!(answer.status(), 400);
    let error: Value = answer.json().await?;
    assert_eq!(error["code"], "08P01", "{error}");
    assert!(error["message"].is_string() && error.get("details").is_some() && error.get("hint").is_some(), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_socket_without_a_key_of_ours_is_refused_before_the_upgrade() -> Result<()> {
    let stage = stage().await?;
    for bad in ["", "nonsense"] {
        let error = stage.connect(bad).await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("401"), "{bad}: {error}");
    }
    Ok(())
}

#[tokio::test]
async fn a_join_echoes_its_bindings_unchanged_with_an_id_each() -> Result<()> {
    let stage = stage().await?;
    for version in ["1.0.0", "2.0.0"] {
        let mut socket = stage.connect_as(&service(), version).await?;
        let asked = json!([
            {"event": "INSERT", "schema": "public", "table": "activities", "filter": "processing_status=eq.raw"},
            {"event": "*", "schema": "public", "table": "activities"},
        ]);
        let reference = socket.send("realtime:x", "phx_join", json!({"config": {"postgres_changes": asked}})).await?;
        let reply = socket.expect("phx_reply").await?;
        assert_eq!((reply.reference, reply.join_ref), (json!(reference), json!("1")));
        let mut given = reply.payload["response"]["postgres_changes"].clone();
        let ids: Vec<u64> = given.as_array().into_iter().flatten().filter_map(|binding| binding["id"].as_u64()).collect();
        assert!(ids.len() == 2 && ids[0] != ids[1] && !ids.contains(&0), "{ids:?}");
        for binding in given.as_array_mut().into_iter().flatten() {
            binding.as_object_mut().map(|binding| binding.remove("id"));
        }
        assert_eq!(given, asked);
        let system = socket.expect("system").await?;
        assert_eq!(
            system.payload,
            json!({"extension": "postgres_changes", "status": "ok", "message": "Subscribed to PostgreSQL", "channel": "x"})
        );
    }
    Ok(())
}

#[tokio::test]
async fn heartbeats_leaving_and_unknown_topics_are_answered_as_clients_expect() -> Result<()> {
    let stage = stage().await?;
    let mut socket = stage.connect(&anon()).await?;
    let reference = socket.send("phoenix", "heartbeat", json!({})).await?;
    let beat = socket.expect("phx_reply").await?;
    assert_eq!((beat.topic.as_str(), beat.reference, beat.payload), ("phoenix", json!(reference), json!({"status": "ok", "response": {}})));

    socket.send("realtime:elsewhere", "broadcast", json!({})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["response"]["reason"], "unmatched topic");

    socket.send("realtime:x", "phx_join", json!({"config": {}})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload, json!({"status": "ok", "response": {"postgres_changes": []}}));
    socket.send("realtime:x", "no-such-event", json!({})).await?;
    socket.send("realtime:x", "phx_leave", json!({})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["status"], "ok");
    let closed = socket.expect("phx_close").await?;
    assert_eq!((closed.reference, closed.payload), (json!("1"), json!({})));
    assert_eq!(stage.realtime.joins(), 0);
    Ok(())
}

#[tokio::test]
async fn a_bad_filter_or_table_is_reported_in_a_system_message() -> Result<()> {
    let stage = stage().await?;
    let mut socket = stage.connect(&service()).await?;
    for (binding, word) in [
        (json!({"event": "*", "schema": "public", "table": "activities", "filter": "nosuch=eq.1"}), "nosuch"),
        (json!({"event": "*", "schema": "public", "table": "activities", "filter": "sales_id=eq.abc"}), "abc"),
        (json!({"event": "*", "schema": "public", "table": "activities", "filter": "id=bogus.1"}), "bogus"),
        (json!({"event": "*", "schema": "public", "table": "nothing_there"}), "alter publication"),
        (json!({"event": "SELECT", "schema": "public", "table": "activities"}), "INSERT"),
    ] {
        socket.send("realtime:x", "phx_join", json!({"config": {"postgres_changes": [binding]}})).await?;
        assert_eq!(socket.expect("phx_reply").await?.payload["status"], "ok");
        let system = socket.expect("system").await?.payload;
        assert_eq!(system["status"], "error");
        assert!(system["message"].as_str().is_some_and(|message| message.contains(word)), "{system}");
    }
    Ok(())
}

#[tokio::test]
async fn a_token_that_cannot_be_read_refuses_the_join_and_an_expired_one_ends_it() -> Result<()> {
    let stage = stage().await?;
    let mut socket = stage.connect(&anon()).await?;
    socket.send("realtime:x", "phx_join", json!({"config": {}, "access_token": "nonsense"})).await?;
    let reply = socket.expect("phx_reply").await?.payload;
    assert!(reply["response"]["reason"].as_str().is_some_and(|reason| reason.starts_with("InvalidJWTToken")), "{reply}");

    let soon = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs() + 1;
    let token = json!({"role": "authenticated", "exp": soon}).to_string();
    socket.send("realtime:x", "phx_join", json!({"config": {}, "access_token": token})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["status"], "ok");
    let system = socket.expect("system").await?.payload;
    assert!(system["message"].as_str().is_some_and(|message| message.starts_with("Token has expired")), "{system}");
    socket.expect("phx_close").await?;
    Ok(())
}

#[tokio::test]
async fn a_revoked_key_is_asked_after_and_its_joins_end() -> Result<()> {
    let stage = stage().await?;
    let path = std::env::temp_dir().join(format!("gleaner-key-{}", std::process::id()));
    std::fs::write(&path, "")?;
    let mut socket = stage.connect(&format!("sb_{}", path.display())).await?;
    socket.send("realtime:x", "phx_join", json!({"config": {}})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["status"], "ok");
    std::fs::remove_file(&path)?;
    let system = socket.expect("system").await?.payload;
    assert_eq!((&system["status"], &system["message"]), (&json!("error"), &json!("Token has expired")));
    socket.expect("phx_close").await?;
    assert_eq!(stage.realtime.joins(), 0);
    Ok(())
}

/// There is no authorisation for private channels, so that joining one would promise what is not kept.
#[tokio::test]
async fn a_private_channel_is_refused() -> Result<()> {
    let stage = stage().await?;
    let mut socket = stage.connect(&service()).await?;
    socket.send("realtime:x", "phx_join", json!({"config": {"private": true}})).await?;
    let reply = socket.expect("phx_reply").await?.payload;
    assert_eq!(
        (&reply["status"], &reply["response"]["reason"]),
        (&json!("error"), &json!("Unauthorized: private channels are not supported: x"))
    );
    socket.send("realtime:x", "phx_join", json!({"config": {"private": false}})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["status"], "ok");
    Ok(())
}

/// Sixteen such frames with the public key once kept the database busy for minutes.
#[tokio::test]
async fn what_a_join_asks_of_the_database_is_bounded() -> Result<()> {
    let stage = stage().await?;
    let mut socket = stage.connect(&anon()).await?;
    let conditions = |count: usize| vec!["sales_id=eq.1"; count].join(",");
    let binding = |table: &str, filter: String| json!({"event": "*", "schema": "public", "table": table, "filter": filter});
    for (bindings, word) in [
        (json!([binding("activities", conditions(101))]), "conditions"),
        (vec![binding("activities", conditions(2)); 51].into(), "conditions"),
        ((0..30).map(|n| binding(&format!("t{n}"), String::new())).collect(), "tables"),
    ] {
        socket.send("realtime:x", "phx_join", json!({"config": {"postgres_changes": bindings}})).await?;
        let reply = socket.expect("phx_reply").await?.payload;
        let reason = reply["response"]["reason"].as_str().unwrap_or_default();
        assert!(reply["status"] == "error" && reason.contains(word), "{reply}");
    }
    let before = std::time::Instant::now();
    for n in 0..16 {
        let bindings: Value = vec![binding("activities", conditions(1)); 100].into();
        socket.send(&format!("realtime:{n}"), "phx_join", json!({"config": {"postgres_changes": bindings}})).await?;
    }
    for _ in 0..16 {
        assert_eq!(socket.expect("phx_reply").await?.payload["status"], "ok");
        socket.expect("system").await?;
    }
    assert!(before.elapsed() < std::time::Duration::from_secs(20), "{:?}", before.elapsed());
    Ok(())
}

#[tokio::test]
async fn what_a_member_makes_us_keep_is_bounded() -> Result<()> {
    let stage = stage().await?;
    let mut socket = stage.connect(&service()).await?;
    socket.send(&format!("realtime:{}", "x".repeat(2000)), "phx_join", json!({"config": {}})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["status"], "error");
    socket.send("realtime:x", "phx_join", json!({"config": {}})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["status"], "ok");
    socket.send("realtime:x", "presence", json!({"event": "track", "payload": {"me": "x".repeat(100_000)}})).await?;
    assert_eq!(socket.expect("phx_reply").await?.payload["status"], "error");
    Ok(())
}

/// A worker's key sees no row that it does not hold, and is notified of work anyway.
#[tokio::test]
async fn a_channel_gets_the_notifications_of_a_queue_without_seeing_a_row() -> Result<()> {
    let stage = stage().await?;
    let mut socket = stage.connect(&user("00000000-0000-0000-0000-000000000001")).await?;
    socket.send("realtime:work", "phx_join", json!({"config": {"gleaner": {"queue": "jobs"}}})).await?;
    let reply = socket.expect("phx_reply").await?;
    assert_eq!(reply.payload, json!({"status": "ok", "response": {"postgres_changes": [], "gleaner": {"queue": "jobs"}}}));
    stage.run("select pg_notify('gleaner', 'jobs')").await?;
    assert_eq!(socket.expect("work").await?.payload, json!({"queue": "jobs"}));
    Ok(())
}

#[tokio::test]
async fn notifications_need_a_key_and_a_queue_that_exists() -> Result<()> {
    let stage = stage().await?;
    for (token, queue, says) in [(anon(), "jobs", "sign in"), (service(), "jbos", "attached are: activities")] {
        let mut socket = stage.connect(&token).await?;
        socket.send("realtime:work", "phx_join", json!({"config": {"gleaner": {"queue": queue}}})).await?;
        let reply = socket.expect("phx_reply").await?;
        let reason = reply.payload["response"]["reason"].as_str().unwrap_or_default();
        assert!(reply.payload["status"] == "error" && reason.contains(says), "{reply:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_that_names_its_device_shows_it_at_work_and_one_that_watches_does_not() -> Result<()> {
    let stage = stage().await?;
    let pool = gleaner::pool(&stage.url, 2)?;
    let ann = stage.person("ann", true).await?;
    let mut watching = stage.connect(&user(&ann)).await?;
    let mut working = stage.connect_as(&anon(), "2.0.0&device=Ann%27s+Mac&app=notes").await?;
    watching.follow("a", json!([{"event": "*", "schema": "public", "table": "activities"}])).await?;
    working.expect_nothing().await?;
    stage.nodes.write(&pool).await?;
    let shown = "select coalesce(string_agg(concat_ws(' ', app_name, device_name, status), ', '), '') from crm_processing_nodes";
    assert_eq!(stage.value(shown).await?, "", "nobody has signed in on the one, and the other only watches");

    // As clients do: connected with the project's key, joined with the person's token.
    working.send("realtime:b", "phx_join", json!({"config": {}, "access_token": user(&ann)})).await?;
    working.expect("phx_reply").await?;
    stage.nodes.write(&pool).await?;
    assert_eq!(stage.value(shown).await?, "notes Ann's Mac ready");
    // Nothing more is sent and nothing more is written. The next heartbeat is written again.
    assert!(!stage.nodes.write(&pool).await?);
    working.expect_nothing().await?;
    assert!(stage.nodes.write(&pool).await?);
    Ok(())
}
