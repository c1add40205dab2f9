//! Who may change where an activity came from, and whose it is.

use anyhow::Result;
use serde_json::{Value, json};

use crate::rest::world::{World, world};

/// An activity that came through a channel, and one that somebody noted; both without an owner.
async fn activities(world: &World) -> Result<(String, String, String)> {
    let row = world
        .client
        .query_one(
            "with c as (insert into ingestion_providers (provider_code, name) values ('generic', 'a channel') returning id),
                  a as (insert into activities (type, provider_id, external_id, sender_kind, sender_address, raw_data, locked_by)
                        select 'sms', id, 'e1', 'email', 'a@example.com', '{\"content\": \"as it came\"}', null from c returning id),
                  n as (insert into activities (type, raw_data) values ('note', '{\"content\": \"noted\"}') returning id)
             select c.id::text, a.id::text, n.id::text from c, a, n",
            &[],
        )
        .await?;
    Ok((row.get(0), row.get(1), row.get(2)))
}

#[tokio::test]
async fn where_an_activity_came_from_is_the_webhook_endpoints_to_write() -> Result<()> {
    let world = world().await?;
    let (_, user) = world.person("anna", true).await?;
    world.run("update sales set administrator = true where first_name = 'anna'").await?;
    let token = world.token(&user);
    let (channel, came, noted) = activities(&world).await?;
    let patch = |id: &str, change: Value| world.patch(&format!("/activities?id=eq.{id}"), change).signed_in(&token);
    for change in [
        json!({"provider_id": null}),
        json!({"external_id": "e2"}),
        json!({"raw_data": {"source_type": "url", "content": "https://api.twilio.com/2010-04-01/Accounts/AC1.json"}}),
        json!({"sender_kind": "phone"}),
        json!({"sender_address": "b@example.com"}),
    ] {
        assert_eq!(patch(&came, change.clone()).refused(403).await?.0, "42501", "{change}");
    }
    assert_eq!(patch(&noted, json!({"provider_id": channel})).refused(403).await?.0, "42501");
    let posted = world.post("/activities", json!({"type": "call", "provider_id": channel, "external_id": "e3"})).signed_in(&token);
    assert_eq!(posted.refused(403).await?.0, "42501");

    // What is sent back as it was read is no change, and a note is its author's.
    let row =
        world.get(&format!("/activities?id=eq.{came}&select=raw_data,provider_id,external_id,sender_address")).single().expect(200).await?;
    patch(&came, row).expect(204).await?;
    patch(&came, json!({"metadata": {"seen": true}})).expect(204).await?;
    patch(&noted, json!({"raw_data": {"content": "noted better"}, "external_id": "n1"})).expect(204).await?;

    // The service key, and the deletion of a channel by an administrator, change it.
    world.patch(&format!("/activities?id=eq.{came}"), json!({"external_id": "e9"})).expect(204).await?;
    world.delete(&format!("/ingestion_providers?id=eq.{channel}")).signed_in(&token).expect(204).await?;
    assert_eq!(world.text(&format!("select provider_id::text from activities where id = '{came}'")).await?, None);
    Ok(())
}

#[tokio::test]
async fn a_worker_changes_the_origin_of_nothing_it_holds() -> Result<()> {
    let world = world().await?;
    let (sales, _) = world.person("anna", true).await?;
    let (_, _, noted) = activities(&world).await?;
    let worker =
        world.signed(json!({"role": "authenticated", "sub": "00000000-0000-0000-0000-0000000000aa", "session_id": "w", "worker": true}));
    world.client.batch_execute("begin; set local role gleaner_engine").await?;
    world
        .client
        .execute("update activities set session = '00000000-0000-0000-0000-0000000000aa/w' where id = $1::text::uuid", &[&noted])
        .await?;
    world.client.batch_execute("commit").await?;
    let patch = |change: Value| world.patch(&format!("/activities?id=eq.{noted}"), change).signed_in(&worker);
    for change in
        [json!({"raw_data": {"content": "other"}}), json!({"sender_address": "x"}), json!({"external_id": "x"}), json!({"sales_id": sales})]
    {
        assert_eq!(patch(change.clone()).refused(403).await?.0, "42501", "{change}");
    }
    patch(json!({"processed_data": {"summary": "short"}})).expect(204).await?;
    Ok(())
}

#[tokio::test]
async fn the_owner_of_a_row_is_changed_by_the_owner_an_administrator_or_assign() -> Result<()> {
    let world = world().await?;
    let (anna_id, anna) = world.person("anna", true).await?;
    let (berta_id, berta) = world.person("berta", false).await?;
    let (chief_id, chief) = world.person("chief", true).await?;
    world.run("update sales set administrator = true where first_name = 'chief'").await?;
    let (anna, berta, chief) = (world.token(&anna), world.token(&berta), world.token(&chief));
    let (_, came, noted) = activities(&world).await?;
    let owner = async || world.text(&format!("select sales_id::text from activities where id = '{came}'")).await;

    // One request took every row of the team that had no owner.
    let taken = world.patch("/activities?sales_id=is.null", json!({"sales_id": berta_id})).signed_in(&berta);
    assert_eq!(taken.refused(403).await?.0, "42501");
    assert_eq!(owner().await?, None);
    world.patch(&format!("/activities?id=eq.{came}"), json!({"sales_id": anna_id})).signed_in(&chief).expect(204).await?;
    let path = format!("/activities?id=eq.{came}");
    assert_eq!(world.patch(&path, json!({"sales_id": berta_id})).signed_in(&berta).refused(403).await?.0, "42501");
    assert_eq!(world.patch(&path, json!({"sales_id": null})).signed_in(&berta).refused(403).await?.0, "42501");
    world.patch(&path, json!({"sales_id": chief_id})).signed_in(&anna).expect(204).await?;
    assert_eq!(owner().await?, Some(chief_id.to_string()));
    // The act records who did it.
    let body = json!({"p_ids": [noted], "p_owner": anna_id});
    world.post("/rpc/assign_activities", body).header("content-profile", "gleaner").signed_in(&anna).expect(200).await?;
    assert_eq!(world.text("select count(*)::text from gleaner.audit where act = 'assign'").await?.as_deref(), Some("1"));
    Ok(())
}

/// A member who asks for a private row and one who asks for a row that does not exist get the same answer.
#[tokio::test]
async fn acts_do_not_reveal_to_a_member_which_rows_others_have() -> Result<()> {
    let world = world().await?;
    let (_, anna) = world.person("anna", true).await?;
    let (berta, _) = world.person("berta", false).await?;
    let token = world.token(&anna);
    let hidden = world.text(&format!("insert into activities (sales_id) values ({berta}) returning id::text")).await?.unwrap_or_default();
    let absent = "00000000-0000-4000-8000-000000000000".to_owned();
    for (act, further) in [("cancel", json!({})), ("requeue", json!({})), ("bury", json!({})), ("assign", json!({"p_owner": null}))] {
        let mut answers = Vec::new();
        for id in [&hidden, &absent] {
            let mut body = further.clone();
            body["p_ids"] = json!([id]);
            let call = world.post(&format!("/rpc/{act}_activities"), body).header("content-profile", "gleaner").signed_in(&token);
            answers.push(call.send().await?.text.replace(id.as_str(), "ID"));
        }
        assert_eq!(answers[0], answers[1], "{act}");
        assert!(answers[0].contains("42501"), "{}", answers[0]);
    }
    Ok(())
}

/// Who never held a row is answered the same for one that another holds, for one that waits, and for one that does not exist.
#[tokio::test]
async fn complete_and_fail_do_not_reveal_which_rows_there_are() -> Result<()> {
    let world = world().await?;
    let (_, user) = world.person("ann", true).await?;
    let (owner, _) = world.person("ben", false).await?;
    let token = world.token(&user);
    world.run(&format!(
        "insert into activities (id, type, sales_id, raw_data) values
            ('00000000-0000-0000-0000-00000000000a', 'note', {owner}, '{{}}'), ('00000000-0000-0000-0000-00000000000b', 'note', {owner}, '{{}}');
         select gleaner.claim_activities('x', 1, p_owner => {owner})"
    )).await?;
    for act in ["complete", "fail", "release", "snooze", "progress", "start"] {
        let mut answers = Vec::new();
        for id in ["00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b", "00000000-0000-0000-0000-00000000000c"] {
            let body = match act {
                "complete" | "progress" => json!({"p_id": id, "p_lease": 7}),
                "fail" => json!({"p_id": id, "p_lease": 7, "p_message": "x"}),
                "snooze" => json!({"p_id": id, "p_lease": 7, "p_until": "2030-01-01T00:00:00Z"}),
                _ => json!({"p_ids": [id], "p_leases": [7]}),
            };
            let path = format!("/rpc/{act}_activities");
            let answer = world.post(&path, body).header("content-profile", "gleaner").signed_in(&token).send().await?;
            answers.push((answer.status, answer.text.replace(id, "ID")));
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{act}: {answers:?}");
        assert_eq!(answers[0].0, 200, "{act}: {answers:?}");
    }
    Ok(())
}
