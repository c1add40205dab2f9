//! `gleaner.ingest_activities`: each event once, each token once, whatever was stored before.

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::json;
use uuid::Uuid;

use crate::contacts::world::{Answer, event, ingest, request, world};

fn outcomes(answers: &[Answer]) -> Vec<(i32, i32, &str)> {
    answers.iter().map(|a| (a.request, a.position, a.outcome.as_str())).collect()
}

#[tokio::test]
async fn what_is_stored_is_raw_owned_and_claimable() -> Result<()> {
    let world = world().await?;
    let owner = world.person("ann").await?;
    let channel = world.channel_with("desk", "{}", false, Some(owner)).await?;
    let mut brought = request(channel, "SM1");
    brought["raw"] = json!({"id": Uuid::from_u128(7), "method": "POST", "target": "/in?key=…", "headers": {"content-type": "text/plain"}, "body_file": null});
    brought["body"] = json!("hello");
    let answers = world.ingest(&[brought]).await?;
    assert_eq!(outcomes(&answers), [(1, 1, "stored")]);
    let id = answers[0].id.expect("an id");
    assert_eq!(
        world.text(&format!("select concat_ws(' ', processing_status, direction, sales_id = {owner}, provider_id = '{channel}', external_id, metadata ->> 'external_id', metadata ->> 'from') from activities where id = '{id}'")).await?.as_deref(),
        Some("raw inbound t t SM1 SM1 +15550100199")
    );
    assert_eq!(
        world
            .text(
                "select concat_ws(' ', method, target, convert_from(body, 'UTF8'), outcome, activity_ids, headers) from gleaner.raw_request"
            )
            .await?,
        Some(format!("POST /in?key=… hello stored {{{id}}} {{\"content-type\": \"text/plain\"}}"))
    );
    let claimed = world.client.query("select id from gleaner.claim_activities('a', p_owner => $1)", &[&owner]).await?;
    assert_eq!(claimed.iter().map(|r| r.get::<_, Uuid>(0)).collect::<Vec<_>>(), [id]);
    Ok(())
}

#[tokio::test]
async fn a_repeated_event_answers_with_the_first_id_and_leaves_no_trace() -> Result<()> {
    let world = world().await?;
    let (channel, other) = (world.channel("desk").await?, world.channel("other").await?);
    let mut brought = request(channel, "SM1");
    brought["raw"] = json!({"id": Uuid::from_u128(1), "method": "POST", "target": "/in"});
    let first = world.ingest(&[brought.clone()]).await?;
    brought["raw"]["id"] = json!(Uuid::from_u128(2));
    // Together with a new event, twice in one group, and the same external id in another channel.
    brought["events"] = json!([event("SM1"), event("SM2")]);
    let again = world.ingest(&[brought, request(channel, "SM2"), request(other, "SM1"), request(channel, "SM1")]).await?;
    assert_eq!(outcomes(&again), [(1, 1, "repeated"), (1, 2, "stored"), (2, 1, "repeated"), (3, 1, "stored"), (4, 1, "repeated")]);
    assert_eq!((again[0].id, again[4].id), (first[0].id, first[0].id));
    assert_eq!(again[2].id, again[1].id);
    assert_eq!(world.count("select count(*) from activities").await?, 3);

    let mut repeated = request(channel, "SM1");
    repeated["raw"] = json!({"id": Uuid::from_u128(3), "method": "POST", "target": "/in"});
    world.ingest(&[repeated]).await?;
    assert_eq!(world.count("select count(*) from gleaner.raw_request").await?, 2, "bytes that only repeat are not kept");
    Ok(())
}

#[tokio::test]
async fn the_same_event_fifty_times_at_once_is_one_activity() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    let clients = try_join_all((0..50).map(|_| gleaner::connect(&world.database.url))).await?;
    let answers =
        try_join_all(clients.iter().map(|client| async { ingest(client, &[request(channel, "SM1"), request(channel, "SM0")]).await }))
            .await?;
    for n in [0, 1] {
        let ids: std::collections::BTreeSet<_> = answers.iter().map(|a| a[n].id.expect("an id")).collect();
        assert_eq!(ids.len(), 1);
        assert_eq!(answers.iter().filter(|a| a[n].outcome == "stored").count(), 1);
    }
    assert_eq!(world.count("select count(*) from activities").await?, 2);
    Ok(())
}

#[tokio::test]
async fn a_one_time_token_is_good_once_and_again_after_it_has_expired() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("mail").await?;
    let with = |external_id: &str| {
        let mut brought = request(channel, external_id);
        brought["once"] = json!([{"token": "t", "seconds": 600}]);
        brought
    };
    // Twice in one group, then by itself: only the first counts, and nothing of the others is stored.
    assert_eq!(
        outcomes(&world.ingest(&[with("a"), with("b"), request(channel, "c")]).await?),
        [(1, 1, "stored"), (2, 0, "replayed"), (3, 1, "stored")]
    );
    assert_eq!(outcomes(&world.ingest(&[with("d")]).await?), [(1, 0, "replayed")]);
    assert_eq!(world.text("select string_agg(external_id, ' ' order by external_id) from activities").await?.as_deref(), Some("a c"));
    world.run("update gleaner.ingest_memory set expires_at = now() - interval '1 second'").await?;
    assert_eq!(outcomes(&world.ingest(&[with("e")]).await?), [(1, 1, "stored")]);
    Ok(())
}

#[tokio::test]
async fn one_token_used_at_once_lets_one_request_in() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("mail").await?;
    let clients = try_join_all((0..20).map(|_| gleaner::connect(&world.database.url))).await?;
    let answers = try_join_all(clients.iter().enumerate().map(|(n, client)| async move {
        let mut brought = request(channel, &format!("e{n}"));
        brought["once"] = json!([{"token": "t", "seconds": 600}]);
        ingest(client, &[brought]).await
    }))
    .await?;
    assert_eq!(answers.iter().filter(|a| a[0].outcome == "stored").count(), 1);
    assert_eq!(world.count("select count(*) from activities").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_recording_gets_what_earlier_requests_of_its_call_said() -> Result<()> {
    let world = world().await?;
    let (channel, other) = (world.channel("voice").await?, world.channel("other").await?);
    let caller = json!({"from": "+14158675309", "to": "+15550100100", "direction": "outbound", "sender": {"kind": "phone", "address": "+14158675309"}});
    let call = json!({"channel": channel, "remember": [{"key": "call:CA1", "value": caller, "seconds": 600}], "events": []});
    assert_eq!(outcomes(&world.ingest(&[call]).await?), [(1, 0, "nothing")]);
    // A later event of the same call, which contains less, and removes nothing.
    world
        .ingest(&[
            json!({"channel": channel, "remember": [{"key": "call:CA1", "value": {"from": null, "status": "completed"}, "seconds": 60}]}),
        ])
        .await?;

    let recording = |external_id: &str| {
        let mut event = event(external_id);
        event["type"] = json!("call");
        event["metadata"] = json!({"call_sid": "CA1", "to": "+15550100111"});
        event["recall"] = json!("call:CA1");
        event
    };
    let brought = |channel: Uuid, external_id: &str| json!({"channel": channel, "events": [recording(external_id)]});
    world.ingest(&[brought(channel, "RE1"), brought(other, "RE2")]).await?;
    let said = |external_id: &str| {
        format!(
            "select concat_ws(' ', direction, sender_kind, sender_address, metadata ->> 'from', metadata ->> 'to') from activities where external_id = '{external_id}'"
        )
    };
    assert_eq!(world.text(&said("RE1")).await?.as_deref(), Some("outbound phone +14158675309 +14158675309 +15550100111"));
    assert_eq!(world.text(&said("RE2")).await?.as_deref(), Some("inbound +15550100111"), "another channel's memory is not ours");

    world.run("update gleaner.ingest_memory set expires_at = now() - interval '1 second'").await?;
    world.ingest(&[brought(channel, "RE3")]).await?;
    assert_eq!(world.text(&said("RE3")).await?.as_deref(), Some("inbound +15550100111"));
    Ok(())
}

#[tokio::test]
async fn a_paused_or_deleted_channel_is_closed_and_its_neighbours_are_not() -> Result<()> {
    let world = world().await?;
    let (open, paused) = (world.channel("open").await?, world.channel("paused").await?);
    world.run(&format!("update ingestion_providers set is_active = false where id = '{paused}'")).await?;
    let mut shut = request(paused, "a");
    shut["raw"] = json!({"id": Uuid::from_u128(1), "method": "POST", "target": "/in"});
    shut["remember"] = json!([{"key": "k", "value": {}, "seconds": 60}]);
    let answers = world.ingest(&[shut, request(open, "b"), request(Uuid::from_u128(9), "c")]).await?;
    assert_eq!(outcomes(&answers), [(1, 0, "closed"), (2, 1, "stored"), (3, 0, "closed")]);
    assert_eq!(world.count("select count(*) from activities").await?, 1);
    assert_eq!(world.count("select (select count(*) from gleaner.raw_request) + (select count(*) from gleaner.ingest_memory)").await?, 0);
    Ok(())
}

#[tokio::test]
async fn one_row_that_cannot_be_stored_takes_its_whole_group_back() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    let mut bad = request(channel, "bad");
    bad["events"][0]["type"] = json!("telegram");
    let mut with_token = request(channel, "good");
    with_token["once"] = json!([{"token": "t", "seconds": 60}]);
    assert!(world.ingest(&[with_token.clone(), bad]).await.is_err());
    assert_eq!(world.count("select count(*) from activities").await?, 0);
    // Alone it is stored, because its token is still unused.
    assert_eq!(outcomes(&world.ingest(&[with_token]).await?), [(1, 1, "stored")]);

    let mut nameless = request(channel, "x");
    nameless["events"][0]["external_id"] = json!(null);
    assert!(world.ingest(&[nameless]).await.is_err());
    Ok(())
}

#[tokio::test]
async fn external_ids_too_long_for_an_index_still_distinguish_events() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    // Random text, which cannot be compressed enough to fit.
    let long: Vec<String> = (0..6).map(|_| (0..300).map(|_| Uuid::new_v4().to_string()).collect()).collect();
    let mut first = request(channel, &long[1]);
    first["events"][0]["sender"] = json!({"kind": "other", "address": long[3]});
    first["remember"] = json!([{"key": long[4], "value": {}, "seconds": 60}]);
    first["once"] = json!([{"token": long[5], "seconds": 60}]);
    assert_eq!(outcomes(&world.ingest(&[first, request(channel, &long[2])]).await?), [(1, 1, "stored"), (2, 1, "stored")]);
    assert_eq!(outcomes(&world.ingest(&[request(channel, &long[1])]).await?), [(1, 1, "repeated")]);
    Ok(())
}

/// The connection was lost between the commit and its response, and the webhook endpoint retries.
#[tokio::test]
async fn a_request_tried_again_after_its_answer_was_lost_is_answered_as_the_first_time() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("mailgun").await?;
    let brought = |token: &str| {
        let mut brought = request(channel, "m1");
        brought["events"][0]["id"] = json!(Uuid::new_v4());
        brought["once"] = json!([{"token": token, "seconds": 600}]);
        brought["raw"] = json!({"id": Uuid::new_v4(), "method": "POST", "target": "/", "headers": {}});
        brought
    };
    let (first, nothing) = (brought("t1"), {
        let mut nothing = brought("t2");
        nothing["events"] = json!([]);
        nothing
    });
    let once = world.ingest(&[first.clone(), nothing.clone()]).await?;
    assert_eq!(once[0].outcome, "stored");
    assert_eq!(world.ingest(&[first.clone(), nothing]).await?, once, "its files are still its own, and its token is used by itself");
    assert_eq!(world.count("select count(*) from activities").await?, 1);
    assert_eq!(world.count("select count(*) from gleaner.raw_request").await?, 2);
    // Any other request with that token is a replay, and a new delivery of the event is a duplicate.
    assert_eq!(world.ingest(&[brought("t1")]).await?[0].outcome, "replayed");
    let again = world.ingest(&[brought("t3")]).await?;
    assert_eq!((again[0].outcome.as_str(), again[0].id), ("repeated", once[0].id));
    Ok(())
}

/// Mailgun signs time and token, but not the message: with a used token, only the same message may be sent again.
#[tokio::test]
async fn a_token_is_good_again_for_what_was_said_with_it_and_for_nothing_else() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("mailgun").await?;
    let brought = |said: &str, event: &str| {
        let mut brought = request(channel, event);
        brought["events"][0]["id"] = json!(Uuid::new_v4());
        brought["once"] = json!([{"token": "t1", "said": said, "seconds": 600}]);
        brought
    };
    // Twice in one group, and once more later: stored once.
    let told = world.ingest(&[brought("a", "m1"), brought("a", "m1")]).await?;
    assert_eq!(outcomes(&told), [(1, 1, "stored"), (2, 1, "repeated")]);
    assert_eq!(outcomes(&world.ingest(&[brought("a", "m1")]).await?), [(1, 1, "repeated")]);
    // Another message with the same token, alone and together with the first.
    assert_eq!(world.ingest(&[brought("b", "m2")]).await?[0].outcome, "replayed");
    let told = world.ingest(&[brought("a", "m1"), brought("b", "m3")]).await?;
    assert_eq!(told.iter().map(|told| told.outcome.as_str()).collect::<Vec<_>>(), ["repeated", "replayed"]);
    assert_eq!(world.count("select count(*) from activities").await?, 1);
    Ok(())
}
