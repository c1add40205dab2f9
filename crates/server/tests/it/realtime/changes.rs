//! What a change looks like, which subscribers receive it, and in which order.

use anyhow::Result;
use serde_json::json;

use crate::realtime::client::{Stage, anon, service, user};

const ALL: &str = "activities";

/// Runs each test with both kinds of feed.
macro_rules! by_both_feeds {
    ($($promise:ident),* $(,)?) => {
        mod by_the_log {
            $(#[tokio::test]
            async fn $promise() -> anyhow::Result<()> {
                super::$promise(crate::realtime::client::stage().await?).await
            })*
        }
        mod by_triggers {
            $(#[tokio::test]
            async fn $promise() -> anyhow::Result<()> {
                super::$promise(crate::realtime::client::stage_by_triggers().await?).await
            })*
        }
    };
}

by_both_feeds! {
    insert_update_and_delete_are_sent_with_the_values_that_reading_gives,
    a_large_value_that_an_update_left_alone_is_sent_too,
    filters_compare_in_the_columns_own_type,
    a_row_is_sent_only_to_those_who_may_read_it,
    a_row_is_sent_as_it_is_now_and_never_as_it_was_while_private,
    the_key_of_a_deleted_row_reaches_only_those_who_were_shown_the_row,
    a_renewed_token_counts_from_then_on,
    changes_of_many_writers_come_in_commit_order_and_none_is_missing,
    a_large_transaction_is_sent_whole_and_in_order,
    changes_of_one_row_by_many_writers_come_in_order,
    a_changed_key_is_sent_with_the_old_one,
    values_of_every_kind_read_as_they_do_from_the_table
}

async fn insert_update_and_delete_are_sent_with_the_values_that_reading_gives(stage: Stage) -> Result<()> {
    let mut socket = stage.connect(&service()).await?;
    let ids = socket.follow("feed", json!([{"event": "*", "schema": "public", "table": ALL}])).await?;
    let id = stage
        .value("insert into activities (type, raw_data, metadata) values ('sms', '{\"content\": \"héllo \\\"x\\\"\", \"n\": 1}', '{}') returning id::text")
        .await?;
    let frame = socket.expect("postgres_changes").await?;
    assert_eq!(frame.payload["ids"], json!(ids));
    let data = &frame.payload["data"];
    let read = stage.value(&format!("select to_jsonb(a)::text from activities as a where id = '{id}'")).await?;
    assert_eq!(data["record"], serde_json::from_str::<serde_json::Value>(&read)?);
    assert_eq!(
        (&data["type"], &data["schema"], &data["table"], &data["errors"]),
        (&json!("INSERT"), &json!("public"), &json!(ALL), &json!(null))
    );
    assert!(data.get("old_record").is_none());
    let columns = data["columns"].as_array().cloned().unwrap_or_default();
    assert!(
        columns.contains(&json!({"name": "id", "type": "uuid"})) && columns.contains(&json!({"name": "sales_id", "type": "int8"})),
        "{columns:?}"
    );

    stage.run(&format!("update activities set metadata = '{{\"seen\": true}}' where id = '{id}'")).await?;
    let update = socket.change().await?;
    assert_eq!((&update["type"], &update["record"]["metadata"]), (&json!("UPDATE"), &json!({"seen": true})));
    assert_eq!(update["old_record"], json!({"id": id}));

    stage.run(&format!("delete from activities where id = '{id}'")).await?;
    let delete = socket.change().await?;
    assert_eq!((&delete["type"], &delete["old_record"]), (&json!("DELETE"), &json!({"id": id})));
    assert!(delete.get("record").is_none());
    Ok(())
}

async fn a_large_value_that_an_update_left_alone_is_sent_too(stage: Stage) -> Result<()> {
    // Random, or it would be compressed into the row and repeated by the log.
    let id = stage
        .value("insert into activities (raw_data) select jsonb_build_object('content', string_agg(gen_random_uuid()::text, '')) from generate_series(1, 500) returning id::text")
        .await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("feed", json!([{"event": "UPDATE", "schema": "public", "table": ALL}])).await?;
    stage.run(&format!("update activities set metadata = '{{\"n\": 1}}' where id = '{id}'")).await?;
    let content = socket.change().await?["record"]["raw_data"]["content"].as_str().map(str::len);
    assert_eq!(content, Some(500 * 36));
    Ok(())
}

async fn filters_compare_in_the_columns_own_type(stage: Stage) -> Result<()> {
    stage.person("ada", true).await?;
    stage.person("bob", true).await?;
    let (ada, bob) = (stage.value("select min(id)::text from sales").await?, stage.value("select max(id)::text from sales").await?);
    let mut socket = stage.connect(&service()).await?;
    let ids = socket
        .follow(
            "feed",
            json!([
                {"event": "INSERT", "schema": "public", "table": ALL, "filter": format!("sales_id=eq.0{bob}")},
                {"event": "INSERT", "schema": "public", "table": ALL, "filter": format!("sales_id=in.({ada},{bob}),type=eq.call")},
                {"event": "INSERT", "schema": "public", "table": ALL, "filter": "created_at=gt.2020-01-01T01:00:00+02:00"},
                {"event": "UPDATE", "schema": "public", "table": ALL},
            ]),
        )
        .await?;
    stage.run(&format!("insert into activities (type, sales_id) values ('call', {bob})")).await?;
    assert_eq!(socket.expect("postgres_changes").await?.payload["ids"], json!([ids[0], ids[1], ids[2]]));
    stage.run(&format!("insert into activities (type, sales_id) values ('sms', {ada})")).await?;
    assert_eq!(socket.expect("postgres_changes").await?.payload["ids"], json!([ids[2]]));
    stage.run("insert into activities (type, created_at) values ('sms', '2019-12-31T22:59:59Z')").await?;
    stage.run("insert into activities (type) values ('sms')").await?;
    assert_eq!(socket.expect("postgres_changes").await?.payload["ids"], json!([ids[2]]), "the old one matched nothing");
    Ok(())
}

async fn a_row_is_sent_only_to_those_who_may_read_it(stage: Stage) -> Result<()> {
    let (private, other) = (stage.person("private", false).await?, stage.person("other", true).await?);
    let owner = stage.value(&format!("select id::text from sales where user_id = '{private}'")).await?;
    let bindings = json!([{"event": "*", "schema": "public", "table": ALL}]);
    let mut sockets = Vec::new();
    for token in [user(&private), user(&other), anon(), service()] {
        let mut socket = stage.connect(&token).await?;
        socket.follow("feed", bindings.clone()).await?;
        sockets.push(socket);
    }
    stage.run(&format!("insert into activities (type, sales_id) values ('note', {owner})")).await?;
    stage.run("insert into activities (type) values ('task')").await?;
    let [mine, theirs, anybody, all] = &mut sockets[..] else { unreachable!() };
    assert_eq!(mine.change().await?["record"]["type"], "note");
    assert_eq!(all.change().await?["record"]["type"], "note");
    for socket in [mine, theirs, all] {
        assert_eq!(socket.change().await?["record"]["type"], "task");
    }
    anybody.expect_nothing().await
}

async fn a_row_is_sent_as_it_is_now_and_never_as_it_was_while_private(stage: Stage) -> Result<()> {
    let (private, other) = (stage.person("private", false).await?, stage.person("other", true).await?);
    let owner = stage.value(&format!("select id::text from sales where user_id = '{private}'")).await?;
    let mut socket = stage.connect(&user(&other)).await?;
    socket.follow("feed", json!([{"event": "*", "schema": "public", "table": ALL}])).await?;
    // A filter must not tell either what a row said.
    socket.follow("guess", json!([{"event": "*", "schema": "public", "table": ALL, "filter": "type=eq.call"}])).await?;
    stage
        .run(&format!(
            "begin;
             insert into activities (id, type, sales_id, raw_data) values (gen_random_uuid(), 'call', {owner}, '{{\"content\": \"the secret\"}}');
             update activities set type = 'note', sales_id = null, raw_data = '{{\"content\": \"redacted\"}}';
             commit"
        ))
        .await?;
    for kind in ["INSERT", "UPDATE"] {
        let change = socket.change().await?;
        assert_eq!((&change["type"], &change["record"]["raw_data"]), (&json!(kind), &json!({"content": "redacted"})));
    }
    socket.expect_nothing().await
}

async fn the_key_of_a_deleted_row_reaches_only_those_who_were_shown_the_row(stage: Stage) -> Result<()> {
    let (private, other) = (stage.person("private", false).await?, stage.person("other", true).await?);
    let owner = stage.value(&format!("select id::text from sales where user_id = '{private}'")).await?;
    let insert = async |owner: &str| stage.value(&format!("insert into activities (sales_id) values ({owner}) returning id::text")).await;
    let mut socket = stage.connect(&user(&other)).await?;
    socket.follow("feed", json!([{"event": "*", "schema": "public", "table": ALL}])).await?;
    let (hidden, shown, taken) = (insert(&owner).await?, insert("null").await?, insert("null").await?);
    for id in [&shown, &taken] {
        assert_eq!(socket.change().await?["record"]["id"], json!(id));
    }
    // Made private before it is deleted.
    stage.run(&format!("update activities set sales_id = {owner} where id = '{taken}'")).await?;
    for id in [&hidden, &taken, &shown] {
        stage.run(&format!("delete from activities where id = '{id}'")).await?;
    }
    let delete = socket.change().await?;
    assert_eq!((&delete["type"], &delete["old_record"]), (&json!("DELETE"), &json!({"id": shown})));
    socket.expect_nothing().await
}

async fn a_renewed_token_counts_from_then_on(stage: Stage) -> Result<()> {
    let private = stage.person("private", false).await?;
    let owner = stage.value("select id::text from sales").await?;
    let bindings = json!([{"event": "INSERT", "schema": "public", "table": ALL}]);
    let mut socket = stage.connect(&anon()).await?;
    socket.follow("feed", bindings.clone()).await?;
    let mut witness = stage.connect(&service()).await?;
    witness.follow("feed", bindings).await?;
    stage.run(&format!("insert into activities (type, sales_id) values ('sms', {owner})")).await?;
    witness.change().await?;
    socket.send("realtime:feed", "access_token", json!({"access_token": user(&private)})).await?;
    // There is no reply. The next frame is the heartbeat's, after which the token is in use.
    socket.expect_nothing().await?;
    stage.run(&format!("insert into activities (type, sales_id) values ('call', {owner})")).await?;
    assert_eq!(socket.change().await?["record"]["type"], "call");
    Ok(())
}

async fn changes_of_many_writers_come_in_commit_order_and_none_is_missing(stage: Stage) -> Result<()> {
    stage.run("create table steps (id bigint primary key, n integer not null); alter publication supabase_realtime add table steps; grant select on steps to service_role").await?;
    stage.run("insert into steps select g, 0 from generate_series(1, 8) g").await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("steps", json!([{"event": "UPDATE", "schema": "public", "table": "steps"}])).await?;
    let writers = (1..=8).map(|id| {
        let url = stage.url.clone();
        tokio::spawn(async move {
            let client = gleaner::connect(&url).await?;
            for _ in 0..100 {
                client.execute("update steps set n = n + 1 where id = $1", &[&i64::from(id)]).await?;
            }
            anyhow::Ok(())
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut last = [0i64; 9];
    for _ in 0..800 {
        let record = &socket.change().await?["record"];
        let (id, n) = (record["id"].as_u64().unwrap_or_default() as usize, record["n"].as_i64().unwrap_or_default());
        assert_eq!(n, last[id] + 1, "row {id}");
        last[id] = n;
    }
    for writer in writers {
        writer.await??;
    }
    Ok(())
}

async fn a_large_transaction_is_sent_whole_and_in_order(stage: Stage) -> Result<()> {
    let mut socket = stage.connect(&service()).await?;
    socket.follow("x", json!([{"event": "INSERT", "schema": "public", "table": ALL}])).await?;
    // More than is sent at once, and less than a socket may be behind.
    stage.run("insert into activities (type, raw_data) select 'note', jsonb_build_object('n', n, 'x', repeat('x', 3000)) from generate_series(1, 900) as n").await?;
    for n in 1..=900 {
        assert_eq!(socket.change().await?["record"]["raw_data"]["n"], n);
    }
    Ok(())
}

async fn changes_of_one_row_by_many_writers_come_in_order(stage: Stage) -> Result<()> {
    stage.run("create table counters (id bigint primary key, n integer not null); alter publication supabase_realtime add table counters; grant select on counters to service_role").await?;
    stage.run("insert into counters select g, 0 from generate_series(1, 10) g").await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("counters", json!([{"event": "UPDATE", "schema": "public", "table": "counters", "filter": "id=lte.2"}])).await?;
    let writers = (3..=10).map(|own| {
        let url = stage.url.clone();
        tokio::spawn(async move {
            let mut client = gleaner::connect(&url).await?;
            for turn in 0..40 {
                let transaction = client.transaction().await?;
                // The transaction id is assigned here, so that the order of transactions differs from the order in which
                // they lock the row.
                transaction.execute("update counters set n = n + 1 where id = $1", &[&i64::from(own)]).await?;
                transaction.execute("update counters set n = n + 1 where id = $1", &[&i64::from(turn % 2 + 1)]).await?;
                transaction.commit().await?;
            }
            anyhow::Ok(())
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut last = [0i64; 3];
    for _ in 0..320 {
        let record = &socket.change().await?["record"];
        let (id, n) = (record["id"].as_u64().unwrap_or_default() as usize, record["n"].as_i64().unwrap_or_default());
        assert_eq!(n, last[id] + 1, "row {id}");
        last[id] = n;
    }
    for writer in writers {
        writer.await??;
    }
    Ok(())
}

async fn a_changed_key_is_sent_with_the_old_one(stage: Stage) -> Result<()> {
    stage.run("create table places (room text, seat int, who text, primary key (room, seat)); alter publication supabase_realtime add table places; grant select on places to service_role").await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("places", json!([{"event": "*", "schema": "public", "table": "places"}])).await?;
    // Only now: a feed that lags may still deliver what was written just before the subscription.
    stage.run("insert into places values ('a, \"b\"', 1, 'ada')").await?;
    assert_eq!(socket.change().await?["type"], "INSERT");
    stage.run("update places set seat = 2").await?;
    let update = socket.change().await?;
    assert_eq!((&update["type"], &update["old_record"]), (&json!("UPDATE"), &json!({"room": "a, \"b\"", "seat": 1})));
    stage.run("delete from places").await?;
    assert_eq!(socket.change().await?["old_record"], json!({"room": "a, \"b\"", "seat": 2}));
    Ok(())
}

async fn values_of_every_kind_read_as_they_do_from_the_table(stage: Stage) -> Result<()> {
    stage
        .run(
            "create type mood as enum ('fine', 'so, so');
             create domain rate as numeric check (value >= 0);
             create table kinds (id uuid primary key default gen_random_uuid(), b boolean, n numeric, r rate, f float8, t text, e mood, j jsonb,
                 at timestamptz, day date, span interval, bytes bytea, tags text[], numbers int[], empty text);
             alter publication supabase_realtime add table kinds; grant select on kinds to service_role",
        )
        .await?;
    let mut socket = stage.connect(&service()).await?;
    socket.follow("kinds", json!([{"event": "INSERT", "schema": "public", "table": "kinds"}])).await?;
    // Settings of the writer's session must not show.
    stage.run("set timezone = 'Asia/Tokyo'; set datestyle = 'SQL, DMY'; set bytea_output = 'escape'; set extra_float_digits = -3").await?;
    stage
        .run(
            "insert into kinds (b, n, r, f, t, e, j, at, day, span, bytes, tags, numbers, empty)
             values (true, 1.50, 0.1, 0.1::float8 + 0.2, E'a \"b\" \\\\ (c), d\n', 'so, so', '{\"k\": [1, \"x\"]}', '2025-01-15 10:30:00.12+02', '2025-01-15',
                     '1 day 02:03', '\\x00ff', array['a,b', 'c \"d\"', null], '{1,null,3}', '')",
        )
        .await?;
    stage.run("reset all").await?;
    let record = socket.change().await?["record"].clone();
    stage.run("set timezone = 'UTC'").await?;
    let read = stage.value("select to_jsonb(k)::text from kinds as k").await?;
    assert_eq!(record, serde_json::from_str::<serde_json::Value>(&read)?);
    Ok(())
}
