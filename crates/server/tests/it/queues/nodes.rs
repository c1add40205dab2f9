//! Which devices work, as a by-product of claims.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use gleaner::Pool;
use gleaner_server::nodes::Nodes;
use gleaner_server::queues::Queues;
use gleaner_server::{Config, Server};
use serde_json::{Value, json};

use crate::queues::stage::{Stage, stage};
use crate::world::{Home, eventually};

/// Creates people, numbered from one. Returns their user ids.
async fn people(stage: &Stage, many: i64) -> Result<Vec<String>> {
    let sql = "insert into sales (id, first_name, user_id) select n, 'p' || n, gen_random_uuid() from generate_series(1, $1::bigint) as n
               returning user_id::text";
    Ok(stage.client.query(sql, &[&many]).await?.iter().map(|row| row.get(0)).collect())
}

/// Records every transaction that writes to the table, by any statement.
async fn watch_writes(stage: &Stage) -> Result<()> {
    let sql = "create table writes (by bigint);
        create function noted() returns trigger language plpgsql as 'begin insert into public.writes values (txid_current()); return null; end';
        create trigger noted after insert or update or delete on crm_processing_nodes for each row execute function noted()";
    Ok(stage.client.batch_execute(sql).await?)
}

async fn count(stage: &Stage, sql: &str) -> Result<i64> {
    Ok(stage.client.query_one(sql, &[]).await?.get(0))
}

/// The rows as people see them.
async fn shown(stage: &Stage) -> Result<Vec<String>> {
    let sql = "select concat_ws(' ', sales_id, app_name, device_name, status, current_activity_id, processed_count)
               from crm_processing_nodes order by sales_id, device_name";
    Ok(stage.client.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}

async fn age(stage: &Stage, seconds: i32) -> Result<()> {
    let sql = format!("update crm_processing_nodes set last_heartbeat = last_heartbeat - interval '{seconds} seconds'");
    Ok(stage.client.batch_execute(&sql).await?)
}

fn nodes(stage: &Stage) -> Result<(Nodes, Pool)> {
    Ok((stage.queues.nodes().clone(), gleaner::pool(&stage.database.url, 4)?))
}

#[tokio::test]
async fn a_hundred_agents_are_written_in_one_statement() -> Result<()> {
    let stage = stage().await?;
    let users = people(&stage, 100).await?;
    stage.client.batch_execute("insert into activities (type, sales_id) select 'sms', n from generate_series(1, 30) as n").await?;
    watch_writes(&stage).await?;
    let (nodes, pool) = nodes(&stage)?;
    for _ in 0..3 {
        let claims = users.iter().enumerate().map(|(n, user)| {
            let (stage, token) = (&stage, stage.user(user));
            async move {
                let asked = json!({"agent": format!("a{n}"), "owner": n + 1, "limit": 1, "device": "laptop"});
                let (status, answer) = stage.post(&token, "activities/claim", asked).await?;
                anyhow::ensure!(status == 200, "{answer}");
                anyhow::Ok(answer)
            }
        });
        try_join_all(claims).await?;
    }
    assert_eq!((nodes.statements(), shown(&stage).await?.len()), (0, 0), "claims themselves write nothing here");
    assert!(nodes.write(&pool).await?);
    assert_eq!(nodes.statements(), 1);
    assert_eq!(count(&stage, "select count(distinct by) from writes").await?, 1, "one transaction for all");
    assert_eq!(count(&stage, "select count(*) from writes").await?, 100, "and each row once");
    assert_eq!(
        count(&stage, "select count(*) from crm_processing_nodes where status = 'processing' and current_activity_id is not null").await?,
        30
    );
    assert_eq!(
        count(&stage, "select count(*) from crm_processing_nodes where status = 'ready' and current_activity_id is null").await?,
        70
    );
    Ok(())
}

#[tokio::test]
async fn a_device_shows_what_it_works_on_and_what_it_has_done() -> Result<()> {
    let stage = stage().await?;
    let user = people(&stage, 1).await?.remove(0);
    stage.client.batch_execute("insert into activities (type, sales_id) values ('sms', 1), ('sms', 1), ('sms', 1)").await?;
    let (nodes, pool) = nodes(&stage)?;
    let token = stage.user(&user);
    let act = async |act: &str, body: Value| {
        let (status, answer) = stage.post(&token, &format!("activities/{act}"), body).await?;
        anyhow::ensure!(status == 200, "{act}: {answer}");
        anyhow::Ok(answer)
    };
    let claimed = act("claim", json!({"agent": "a", "owner": 1, "limit": 3, "app": "crm", "device": "Mac"})).await?;
    let held: Vec<Value> = claimed["items"].as_array().cloned().unwrap_or_default();
    let named = |n: usize| json!({"key": held[n]["key"], "lease": held[n]["lease"]});
    nodes.write(&pool).await?;
    let first = shown(&stage).await?.remove(0);
    assert!(first.starts_with("1 crm Mac processing ") && first.ends_with(" 0"), "{first}");

    act("complete", named(0)).await?;
    act("fail", {
        let mut failed = named(1);
        failed["message"] = json!("no");
        failed
    })
    .await?;
    nodes.write(&pool).await?;
    assert_eq!(shown(&stage).await?, [format!("1 crm Mac processing {} 1", held[2]["key"].as_str().unwrap_or_default())]);

    // A row whose work ends without our notice is not shown as being worked on.
    stage.ask("activities/cancel", json!({"keys": [held[2]["key"]]})).await?;
    act("claim", json!({"agent": "a", "owner": 1, "app": "crm", "device": "Mac"})).await?;
    nodes.write(&pool).await?;
    assert_eq!(shown(&stage).await?, ["1 crm Mac ready 1"]);
    Ok(())
}

#[tokio::test]
async fn a_device_silent_for_two_minutes_is_offline_and_then_nothing_is_written() -> Result<()> {
    let stage = stage().await?;
    let users = people(&stage, 2).await?;
    let (nodes, pool) = nodes(&stage)?;
    let claim = async |who: usize| {
        stage.post(&stage.user(&users[who]), "activities/claim", json!({"agent": "a", "owner": who + 1, "device": "Mac"})).await
    };
    claim(0).await?;
    claim(1).await?;
    nodes.write(&pool).await?;
    watch_writes(&stage).await?;
    assert!(!nodes.write(&pool).await?, "no request came, and no device has been silent for long");

    age(&stage, 119).await?;
    claim(1).await?;
    nodes.write(&pool).await?;
    assert_eq!(shown(&stage).await?, ["1 atomic-crm Mac ready 0", "2 atomic-crm Mac ready 0"], "not yet");
    // One second after that, according to the database.
    let before = nodes.statements();
    while !nodes.write(&pool).await? {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(shown(&stage).await?, ["1 atomic-crm Mac offline 0", "2 atomic-crm Mac ready 0"]);
    assert_eq!(nodes.statements() - before, 1);

    age(&stage, 200).await?;
    nodes.reported();
    nodes.write(&pool).await?;
    assert_eq!(shown(&stage).await?, ["1 atomic-crm Mac offline 0", "2 atomic-crm Mac offline 0"]);
    stage.client.batch_execute("truncate writes").await?;
    let before = nodes.statements();
    for _ in 0..10 {
        assert!(!nodes.write(&pool).await?);
    }
    assert_eq!((nodes.statements(), count(&stage, "select count(*) from writes").await?), (before, 0), "all are offline: nothing to say");
    claim(0).await?;
    nodes.write(&pool).await?;
    assert_eq!(shown(&stage).await?[0], "1 atomic-crm Mac ready 0", "and back");
    Ok(())
}

#[tokio::test]
async fn two_servers_do_not_take_each_others_devices_offline() -> Result<()> {
    let stage = stage().await?;
    let user = people(&stage, 1).await?.remove(0);
    let (one, pool) = nodes(&stage)?;
    let second = Queues::new(&stage.database.url, pool.clone(), stage.access.clone());
    let two = second.nodes().clone();
    let claim = json!({"agent": "a", "owner": 1, "device": "Mac"});
    stage.post(&stage.user(&user), "activities/claim", claim).await?;
    one.write(&pool).await?;
    // The other server has had no request from it. It queries the row and does not change it; one statement every two
    // minutes is enough for that.
    assert!(two.write(&pool).await?);
    assert!(!two.write(&pool).await?);
    assert_eq!(shown(&stage).await?, ["1 atomic-crm Mac ready 0"]);
    // Both at once, again and again, while one of them gets requests from the device: never offline, never a deadlock.
    age(&stage, 300).await?;
    for _ in 0..20 {
        stage.post(&stage.user(&user), "activities/claim", json!({"agent": "a", "owner": 1, "device": "Mac"})).await?;
        two.reported();
        tokio::try_join!(one.write(&pool), two.write(&pool))?;
        assert_eq!(shown(&stage).await?, ["1 atomic-crm Mac ready 0"]);
        age(&stage, 60).await?;
    }
    // The server that knew it stops. The other marks it offline when its time is over.
    drop(one);
    age(&stage, 300).await?;
    two.reported();
    two.write(&pool).await?;
    assert_eq!(shown(&stage).await?, ["1 atomic-crm Mac offline 0"]);
    Ok(())
}

#[tokio::test]
async fn an_unavailable_database_costs_no_counts_and_programs_without_an_owner_are_not_shown() -> Result<()> {
    let stage = stage().await?;
    people(&stage, 3).await?;
    stage.client.batch_execute("insert into activities (type, sales_id) values ('sms', 3)").await?;
    let (nodes, pool) = nodes(&stage)?;
    stage.ask("jobs/claim", json!({"agent": "a", "device": "rack"})).await?;
    stage.ask("activities/claim", json!({"agent": "a"})).await?;
    let claimed = stage.ask("activities/claim", json!({"agent": "a", "owner": 3, "device": "rack"})).await?;
    let item = &claimed["items"][0];
    stage.ask("activities/complete", json!({"key": item["key"], "lease": item["lease"]})).await?;
    let away = gleaner::pool("postgres://nobody@127.0.0.1:1/none", 1)?;
    assert!(nodes.write(&away).await.is_err());
    nodes.write(&pool).await?;
    assert_eq!(shown(&stage).await?, ["3 atomic-crm rack ready 1"]);
    Ok(())
}

/// The whole server: its interval of a minute, made short, the claim functions of the CRM, and rows that programs write
/// themselves.
#[tokio::test]
async fn a_server_writes_devices_by_itself_and_an_idle_server_writes_nothing() -> Result<()> {
    let stage = stage().await?;
    let user = people(&stage, 1).await?.remove(0);
    stage.client.batch_execute("insert into activities (type, sales_id) values ('sms', 1)").await?;
    let home = Home::new()?;
    let mut config = Config::new(&home.0);
    (config.listen, config.realtime, config.nodes_every) = (SocketAddr::from(([127, 0, 0, 1], 0)), false, Duration::from_millis(100));
    let server = Server::start(config, &stage.database.url, gleaner::pool(&stage.database.url, 8)?).await?;
    let nodes = server.state().queues.nodes().clone();
    let access = server.state().access.clone();
    let token = access.sign(json!({"role": "authenticated", "sub": user, "session_id": user}).as_object().expect("an object"));
    let anon = access.project_key(gleaner_http::Role::Anon);
    let rest = async |path: &str, body: Value| {
        let request = stage.http.post(format!("http://{}/rest/v1/{path}", server.local_addr()));
        let answer = request
            .bearer_auth(&token)
            .header("apikey", &anon)
            .header("x-client-info", "supabase-js-web/2.58.0")
            .json(&body)
            .send()
            .await?;
        anyhow::ensure!(answer.status().is_success(), "{path}: {}", answer.text().await?);
        anyhow::Ok(())
    };
    let until = async |wanted: &[&str]| {
        for _ in 0..100 {
            let now = shown(&stage).await?;
            if now.len() == wanted.len() && now.iter().zip(wanted).all(|(row, part)| row.contains(part)) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("wanted {wanted:?}, there is {:?}", shown(&stage).await?)
    };
    let five_rounds = async || {
        let rounds = nodes.rounds();
        eventually("five rounds", async || Ok(nodes.rounds() >= rounds + 5)).await
    };
    eventually("the first statement", async || Ok(nodes.statements() > 0)).await?;
    five_rounds().await?;
    assert_eq!(nodes.statements(), 1, "one query for what was left, then none");

    rest("rpc/claim_next_pending_activity", json!({"p_agent_sales_id": 1})).await?;
    until(&["1 atomic-crm supabase-js-web/2.58.0 processing"]).await?;
    let before = nodes.statements();
    five_rounds().await?;
    assert_eq!(nodes.statements(), before, "written once, not in every round");
    rest("crm_processing_nodes", json!({"sales_id": 1, "device_name": "old", "last_heartbeat": "2001-01-01T00:00:00Z"})).await?;
    until(&["old offline", "supabase-js-web/2.58.0 processing"]).await?;
    server.stop().await;
    Ok(())
}
