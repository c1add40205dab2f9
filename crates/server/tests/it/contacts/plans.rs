//! The cost of matching with 200,000 contacts: index probes, under every kind of plan.
//!
//! Plans come from `auto_explain`, including nested statements, so that the test sees what the functions really run.

use anyhow::{Result, ensure};
use futures_util::{StreamExt as _, stream};
use gleaner_intake::contacts;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::contacts::world::{World, ingest, request, world};

/// The most shared buffers that storing one event may touch in contacts, their addresses and the unmatched.
const MOST: i64 = 60;

struct Watched {
    client: Client,
    plans: mpsc::UnboundedReceiver<Value>,
}

impl Watched {
    async fn connect(world: &World, settings: &str) -> Result<Self> {
        let (client, mut connection) = tokio_postgres::connect(&world.database.url, NoTls).await?;
        let (tell, plans) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message
                    && let Some((_, plan)) = notice.message().split_once("plan:\n")
                {
                    let _ = tell.send(serde_json::from_str(plan).unwrap_or(Value::Null));
                }
            }
        });
        client
            .batch_execute(&format!(
                "load 'auto_explain'; set auto_explain.log_nested_statements = on; set auto_explain.log_analyze = on;
                 set auto_explain.log_buffers = on; set auto_explain.log_timing = off; set auto_explain.log_format = json;
                 {settings}; set client_min_messages = log; set auto_explain.log_min_duration = 0"
            ))
            .await?;
        Ok(Self { client, plans })
    }

    /// Every scan of these tables since the last call; none may be sequential. Returns the number of scans, and their
    /// buffers.
    fn scans(&mut self, what: &str) -> Result<(usize, i64)> {
        let (mut count, mut buffers) = (0, 0);
        while let Ok(plan) = self.plans.try_recv() {
            let mut nodes = vec![&plan["Plan"]];
            while let Some(node) = nodes.pop() {
                nodes.extend(node["Plans"].as_array().into_iter().flatten());
                if !matches!(node["Relation Name"].as_str(), Some("contacts" | "contact_addresses" | "activities")) {
                    continue;
                }
                let kind = node["Node Type"].as_str().unwrap_or_default();
                ensure!(kind != "Seq Scan", "{what}: sequential scan in\n{}\n{node:#}", plan["Query Text"]);
                if kind.contains("Scan") {
                    count += 1;
                    buffers += node["Shared Hit Blocks"].as_i64().unwrap_or(0) + node["Shared Read Blocks"].as_i64().unwrap_or(0);
                }
            }
        }
        Ok((count, buffers))
    }
}

#[tokio::test]
async fn looking_up_a_sender_among_200_000_contacts_is_an_index_scan() -> Result<()> {
    let world = world().await?;
    world
        .run(
            // Written directly instead of by the trigger: deriving it 200,000 times is not what this test measures.
            "set synchronous_commit = off; alter table contacts disable trigger refresh_contact_addresses;
             insert into contacts (id, first_name, email, phone_number)
             select n, 'n' || n, 'person' || n || '@example.com', '(415) ' || (2000000 + n)::text from generate_series(1, 200000) n;
             insert into contact_addresses (contact_id, kind, address, written, loose, parsed)
             select id, 'email', email, email, email, true from contacts
             union all
             select id, 'phone', '+1415' || substr(phone_number, 7), phone_number, '415' || substr(phone_number, 7), false from contacts;
             alter table contacts enable trigger refresh_contact_addresses;
             alter table activities disable trigger user;
             insert into activities (sender_kind, sender_address, contact_id)
             select 'email', 'stranger' || n % 5000 || '@example.org', case when n % 3 = 0 then n end from generate_series(1, 20000) n;
             alter table activities enable trigger user",
        )
        .await?;
    let channel = world.channel("desk").await?;
    // A message does not wait for a whole import to be parsed: it pays for one slice.
    let mut watched = Watched::connect(&world, "select 1").await?;
    ensure!(contacts::parse_pending(&watched.client).await? <= 200);
    watched.scans("one slice of the import")?;

    for (how, settings) in
        [("custom plans", "set plan_cache_mode = force_custom_plan"), ("generic plans", "set plan_cache_mode = force_generic_plan")]
    {
        // With statistics from when the tables were empty, and with current ones.
        for statistics in ["select 1", "analyze contacts; analyze contact_addresses; analyze activities"] {
            world.run(statistics).await?;
            let mut watched = Watched::connect(&world, settings).await?;
            for (n, (kind, address)) in [
                ("email", "person777@example.com"),
                ("email", "person777+tag@example.com"),
                ("email", "nobody@example.org"),
                ("phone", "+14152000777"),
                ("phone", "+525512345678"),
                ("phone", "+12129998888"),
                ("phone", "1234567"),
                ("other", "telegram:1"),
            ]
            .into_iter()
            .enumerate()
            {
                let mut brought = request(channel, &format!("{how} {statistics} {n}"));
                brought["events"][0]["sender"] = json!({"kind": kind, "address": address});
                ingest(&watched.client, &[brought]).await?;
                let (count, buffers) = watched.scans(&format!("{how}: {address}"))?;
                ensure!(count > 0, "{how}: {address}: no scan was seen");
                ensure!(buffers <= MOST, "{how}: {address}: {buffers} buffers");
            }
        }
    }

    let mut watched = Watched::connect(&world, "select 1").await?;
    world.run("update contact_addresses set parsed = true where not parsed").await?;
    world.run("vacuum contact_addresses").await?;
    ensure!(contacts::parse_pending(&watched.client).await? == 0);
    let (count, buffers) = watched.scans("nothing to read")?;
    ensure!(count == 1 && buffers <= 5, "asking whether anything waits: {count} scans, {buffers} buffers");
    let unmatched = contacts::unmatched(&watched.client, &contacts::Page::default()).await?;
    ensure!(!unmatched.is_empty());
    contacts::link(&watched.client, unmatched[0].id, 1, contacts::Link { backfill: true, remember: false }).await?;
    watched.scans("link and backfill")?;
    Ok(())
}
