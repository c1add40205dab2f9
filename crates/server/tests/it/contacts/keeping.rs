//! What is stored for a limited time: raw requests, recalled data, counts of refusals; and who may read it.

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::json;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::contacts::world::{text, world};

#[tokio::test]
async fn refusals_are_counted_by_channel_minute_and_reason() -> Result<()> {
    let world = world().await?;
    let channel = world.channel("desk").await?;
    let at = "2026-01-01T10:00:30Z";
    let refused = json!([
        {"provider": channel, "reason": "mismatch", "status": 401, "count": 3, "at": at, "client": "192.0.2.1", "detail": "first"},
        {"provider": channel, "reason": "mismatch", "status": 401, "count": 2, "at": "2026-01-01T10:00:59Z", "client": "192.0.2.2", "detail": "second"},
        {"provider": channel, "reason": "mismatch", "status": 401, "at": "2026-01-01T10:01:00Z"},
        {"provider": null, "reason": "unknown key", "status": 401, "at": at},
        {"provider": null, "reason": "unknown key", "status": 401, "count": 4, "at": at, "detail": "x".repeat(5000)}
    ]);
    world.client.execute("select gleaner.record_refusals($1)", &[&refused]).await?;
    let clients = try_join_all((0..10).map(|_| gleaner::connect(&world.database.url))).await?;
    let record = async |client: &Client| client.execute("select gleaner.record_refusals($1)", &[&refused]).await;
    try_join_all(clients.iter().map(record)).await?;
    let counted = world
        .text("select string_agg(concat_ws(' ', reason, count, host(last_client), left(detail, 6)), ', ' order by reason, at_minute) from gleaner.ingest_refusal")
        .await?;
    assert_eq!(counted.as_deref(), Some("mismatch 55 192.0.2.2 second, mismatch 11, unknown key 55 xxxxxx"));
    assert_eq!(world.count("select max(length(detail))::bigint from gleaner.ingest_refusal").await?, 500);
    Ok(())
}

#[tokio::test]
async fn pruning_goes_by_age_and_number_in_bounded_steps() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "insert into gleaner.raw_request (id, provider_id, received_at, method, target, outcome, body_file)
             select gen_random_uuid(), gen_random_uuid(), now() - n * interval '1 day', 'POST', '/', 'stored', 'file-' || n from generate_series(0, 9) n;
             insert into gleaner.ingest_memory (provider_id, key, expires_at)
             select gen_random_uuid(), n::text, now() + (n - 5) * interval '1 hour' from generate_series(1, 9) n;
             insert into gleaner.ingest_refusal (at_minute, reason, status, count, last_at)
             select now() - n * interval '10 days', 'stale', 401, 1, now() from generate_series(0, 9) n",
        )
        .await?;
    let prune = |arguments: &'static str| {
        let client = &world.client;
        async move {
            text(
                client,
                &format!("select string_agg(concat_ws(' ', what, removed, files), ', ') from gleaner.prune_ingestion({arguments})"),
            )
            .await
        }
    };
    let step = prune("'7 days 1 hour', 100, '25 days', 2").await?;
    assert_eq!(step.as_deref(), Some("raw_request 2 {file-8,file-9}, ingest_memory 2 {}, ingest_refusal 2 {}"));
    let step = prune("'7 days 1 hour', 100, '25 days', 100").await?;
    assert_eq!(step.as_deref(), Some("raw_request 0 {}, ingest_memory 3 {}, ingest_refusal 5 {}"));
    // Beyond the newest five, however recent.
    let step = prune("'7 days 1 hour', 5, '25 days', 100").await?;
    assert_eq!(step.as_deref(), Some("raw_request 3 {file-5,file-6,file-7}, ingest_memory 0 {}, ingest_refusal 0 {}"));
    assert_eq!(world.count("select count(*) from gleaner.ingest_memory").await?, 4);
    Ok(())
}

#[tokio::test]
async fn raw_requests_and_refusals_are_for_administrators_and_memory_for_no_role() -> Result<()> {
    let world = world().await?;
    let (member, administrator) = (world.person("ann").await?, world.person("ada").await?);
    world.run(&format!("update sales set administrator = true where id = {administrator}")).await?;
    world
        .run(&format!(
            "insert into gleaner.raw_request (id, provider_id, received_at, method, target, outcome) values ('{0}', '{0}', now(), 'POST', '/', 'nothing');
             insert into gleaner.ingest_refusal (at_minute, reason, status, count, last_at) values (now(), 'stale', 401, 1, now())",
            Uuid::from_u128(1)
        ))
        .await?;
    let seen = "select ((select count(*) from gleaner.raw_request) + (select count(*) from gleaner.ingest_refusal))::text";
    assert_eq!(text(&world.signed_in(member).await?, seen).await?.as_deref(), Some("0"));
    let ada = world.signed_in(administrator).await?;
    assert_eq!(text(&ada, seen).await?.as_deref(), Some("2"));
    for forbidden in [
        "select count(*) from gleaner.ingest_memory",
        "delete from gleaner.raw_request",
        "select * from gleaner.ingest_activities('1s', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
        "select gleaner.record_refusals('[]')",
        "select * from gleaner.prune_ingestion()",
        "select * from gleaner.create_contacts('{}')",
        "select gleaner.parse_addresses('[]')",
    ] {
        let error = ada.query(forbidden, &[]).await.unwrap_err();
        assert_eq!(error.code().map(|c| c.code()), Some("42501"), "{forbidden}");
    }
    Ok(())
}
