//! Workspaces keep their dumps apart: who belongs to one, and what the others see of it, which is nothing.

use anyhow::{Context as _, Result};
use gleaner::{Claim, Completion};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::world::{World, text, world};

/// A member of the team with a workspace; returns a connection of theirs and the basket.
async fn with_workspace(world: &World, name: &str) -> Result<(Client, String)> {
    let person = world.person(name, 5, true).await?;
    let client = world.signed_in(person, name).await?;
    let made: Value = client.query_one("select fn_workspace_create($1)", &[&name]).await?.get(0);
    Ok((client, made["basket_id"].as_str().context("a basket")?.to_owned()))
}

async fn capture(client: &Client, basket: &str, text: &str) -> Result<()> {
    client.execute(&format!("insert into raw_dumps (basket_id, body_md) values ('{basket}', '{text}')"), &[]).await?;
    Ok(())
}

async fn refused(client: &Client, sql: &str) -> Result<String> {
    let error = client.batch_execute(sql).await.err().with_context(|| format!("{sql} was not refused"))?;
    Ok(error.code().map(|code| code.code().to_owned()).unwrap_or_default())
}

const RELATIONS: &[&str] = &[
    "workspaces",
    "workspace_members",
    "baskets",
    "raw_dumps",
    "agent_processing_queue",
    "blocks",
    "context_items",
    "context_item_sources",
    "substrate_relationships",
    "queue_health",
    "queue_depth_by_workspace",
    "workspace_health",
    "processing_performance",
    "dump_agents",
];

#[tokio::test]
async fn two_workspaces_see_nothing_of_each_other_in_tables_and_views() -> Result<()> {
    let world = world().await?;
    let (ann, of_ann) = with_workspace(&world, "Ann").await?;
    let (bob, of_bob) = with_workspace(&world, "Bob").await?;
    capture(&ann, &of_ann, "finished").await?;
    let queue = world.queue("dumps").await?;
    let item = queue.claim(&Claim::by("agent")).await?.items.pop().context("a dump")?;
    let found = json!({
        "blocks": [{"title": "t", "content": "c", "semantic_type": "fact"}],
        "context_items": [{"kind": "entity", "label": "Meyer"}],
        "relationships": [{"from_type": "block", "from": "t", "to_type": "context_item", "to": "Meyer", "relationship_type": "mentions"}],
    });
    queue.complete(&[Completion::new(item.held(), Some(found))]).await?;
    capture(&ann, &of_ann, "waiting").await?;
    for relation in RELATIONS {
        let seen = text(&ann, &format!("select count(*)::text from {relation}")).await?;
        assert_ne!(seen.as_deref(), Some("0"), "Ann sees her own {relation}");
        let workspace = if ["workspaces", "workspace_members", "baskets", "workspace_health"].contains(relation) { "1" } else { "0" };
        assert_eq!(text(&bob, &format!("select count(*)::text from {relation}")).await?.as_deref(), Some(workspace), "Bob sees {relation}");
    }
    assert_eq!(text(&bob, &format!("select fn_reflections('{of_ann}') ->> 'dumps'")).await?.as_deref(), Some("0"));

    // Nor does he write there, or operate what waits there.
    assert_eq!(refused(&bob, &format!("insert into raw_dumps (basket_id, body_md) values ('{of_ann}', 'x')")).await?, "42501");
    assert_eq!(bob.execute(&format!("delete from raw_dumps where basket_id = '{of_ann}'"), &[]).await?, 0);
    let waiting = world.text("select id::text from agent_processing_queue where processing_state = 'pending'").await?.context("one")?;
    for act in ["requeue", "bury", "cancel"] {
        assert_eq!(refused(&bob, &format!("select gleaner.{act}_dumps('{{{waiting}}}')")).await?, "42501");
    }
    assert_eq!(text(&bob, &format!("select gleaner.explain_dumps('{waiting}')::text")).await?, None);
    assert_eq!(refused(&bob, "select gleaner.stats_dumps()").await?, "42501");
    capture(&bob, &of_bob, "his own").await?;
    Ok(())
}

#[tokio::test]
async fn members_skip_and_requeue_the_dumps_of_their_workspace() -> Result<()> {
    let world = world().await?;
    let (ann, basket) = with_workspace(&world, "Ann").await?;
    capture(&ann, &basket, "poisoned").await?;
    let id = text(&ann, "select id::text from agent_processing_queue").await?.context("queued")?;
    let skipped = format!("select outcome from gleaner.bury_dumps('{{{id}}}', 'poisoned')");
    assert_eq!(text(&ann, &skipped).await?.as_deref(), Some("done"));
    assert_eq!(world.queue("dumps").await?.claim(&Claim::by("agent")).await?.items.len(), 0, "nobody takes it");
    assert_eq!(text(&ann, &format!("select outcome from gleaner.requeue_dumps('{{{id}}}')")).await?.as_deref(), Some("done"));
    assert_eq!(world.queue("dumps").await?.claim(&Claim::by("agent")).await?.items.len(), 1);
    Ok(())
}

#[tokio::test]
async fn an_invitation_admits_once_and_only_the_address_it_names() -> Result<()> {
    let world = world().await?;
    let (ann, _) = with_workspace(&world, "Ann").await?;
    let workspace = text(&ann, "select id::text from workspaces").await?.context("hers")?;
    let invite = format!("select fn_workspace_invite('{workspace}', ' Bob@Example.com ') ->> 'token'");
    let token = text(&ann, &invite).await?.context("a token")?;
    let person = world.person("bob", 5, true).await?;
    let uid = world.text(&format!("select user_id::text from sales where id = {person}")).await?.context("a user")?;
    let as_bob = async |email: &str| -> Result<Client> {
        let client = world.connect().await?;
        let claims = json!({"role": "authenticated", "sub": uid, "email": email});
        client.batch_execute(&format!("set role authenticated; select set_config('request.jwt.claims', '{claims}', false)")).await?;
        Ok(client)
    };
    let join = format!("select fn_workspace_join('{token}')");
    assert_eq!(refused(&as_bob("mallory@example.com").await?, &join).await?, "42501", "another address");
    let bob = as_bob("bob@example.com").await?;
    assert_eq!(text(&bob, "select count(*)::text from workspaces").await?.as_deref(), Some("0"));
    assert_eq!(refused(&bob, &invite).await?, "42501", "who is no owner does not invite");
    bob.batch_execute(&join).await?;
    assert_eq!(text(&bob, "select count(*)::text from workspaces").await?.as_deref(), Some("1"));
    assert_eq!(refused(&bob, &join).await?, "42501", "it is good once");
    assert_eq!(text(&bob, "select count(*)::text from workspace_invitations").await?.as_deref(), Some("0"), "invitations are for owners");

    // Members leave; the last owner does not while there are members.
    assert_eq!(refused(&ann, "delete from workspace_members where user_id = auth.uid()").await?, "GL002");
    assert_eq!(bob.execute("delete from workspace_members where role = 'owner'", &[]).await?, 0, "a member removes nobody else");
    assert_eq!(ann.execute("delete from workspace_members where role = 'member'", &[]).await?, 1);
    assert_eq!(text(&bob, "select count(*)::text from workspaces").await?.as_deref(), Some("0"));
    Ok(())
}

#[tokio::test]
async fn who_leaves_the_team_sees_no_workspace_any_more() -> Result<()> {
    let world = world().await?;
    let (ann, _) = with_workspace(&world, "Ann").await?;
    world.run("update sales set disabled = true").await?;
    assert_eq!(text(&ann, "select count(*)::text from workspaces").await?.as_deref(), Some("0"));
    assert_eq!(refused(&ann, "select fn_workspace_create('another')").await?, "42501");
    Ok(())
}

#[tokio::test]
async fn the_busy_share_of_an_agent_counts_dumps_worked_side_by_side_once() -> Result<()> {
    let world = world().await?;
    let (ann, basket) = with_workspace(&world, "Ann").await?;
    for _ in 0..3 {
        capture(&ann, &basket, "x").await?;
    }
    // Two side by side for ten minutes, a pause of twenty, and one for ten more: half of the time.
    world
        .run(
            "begin; set local role gleaner_engine;
             update agent_processing_queue as q set processing_state = 'completed', claimed_by = 'agent',
                 claimed_at = now() - make_interval(mins => s.from), completed_at = now() - make_interval(mins => s.until)
             from (select id, row_number() over () as n from agent_processing_queue) as r,
                  (values (1, 40, 30), (2, 40, 30), (3, 10, 0)) as s (n, \"from\", until)
             where q.id = r.id and s.n = r.n; commit",
        )
        .await?;
    let share = "select format('%s %s', completed, round(busy_share, 2)) from dump_agents where agent = 'agent'";
    assert_eq!(text(&ann, share).await?.as_deref(), Some("3 0.50"));
    Ok(())
}
