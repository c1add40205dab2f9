//! A server behaves like a database: the operations of a `Backend` beyond the acts, over both kinds of routes.

use anyhow::Result;
use gleaner::{Completion, Held};
use gleaner_agent::mcp::{Grants, Settings};
use serde_json::json;

use super::stage::{Stage, done, refused};
use super::working::works_one;
use crate::conformance::stage::Over;

async fn an_assistant_works(over: Over) -> Result<()> {
    let stage = Stage::over(over, Settings::default()).await?;
    let assistant = stage.assistant().await?;
    works_one(&stage, &assistant).await?;

    let key = stage.job("mail", json!({})).await?;
    let claimed = done(&assistant, "claim", json!({"queue": "jobs"})).await?;
    stage.age("6 minutes").await?;
    let taken = stage.other_agent().await?;
    let stale = json!({"queue": "jobs", "key": key, "lease": claimed["items"][0]["lease"]});
    assert_eq!(refused(&assistant, "complete", stale).await?.0, "lost");
    stage.jobs().complete(&[Completion::new(Held::new(&key, taken[0].lease), None)]).await?;

    stage.job("mail", json!({})).await?;
    done(&assistant, "claim", json!({"queue": "jobs"})).await?;
    assert_eq!(stage.service.close().await, 1);
    assert_eq!(stage.text("select count(*) from gleaner.jobs where status = 'ready' and attempts = 0 and lost = 0").await?, "1");
    assert_eq!(refused(&assistant, "claim", json!({"queue": "job"})).await?.0, "no_such_queue");
    Ok(())
}

async fn grants_reach_as_far(over: Over) -> Result<()> {
    let stage = Stage::over(over, Settings { grants: Grants::all(), accepts: vec!["jobs".into()], ..Settings::default() }).await?;
    let assistant = stage.assistant().await?;
    stage.run("insert into contacts (first_name) values ('Ada'); insert into activities (type, raw_data) values ('note', '{}')").await?;
    let (activity, contact) =
        (stage.text("select id from activities").await?, stage.text("select id from contacts").await?.parse::<i64>()?);
    done(&assistant, "link_contact", json!({"activity": activity, "contact": contact})).await?;
    assert_eq!(stage.text("select contact_id from activities").await?, contact.to_string());
    assert_eq!(refused(&assistant, "link_contact", json!({"activity": activity, "contact": 999})).await?.0, "invalid");
    let scheduled = done(&assistant, "schedule_followup", json!({"prospect": "p1", "at": "2030-01-01T09:00:00Z"})).await?;
    let followup = stage.text("select id from scheduled_actions").await?;
    assert_eq!(followup, scheduled["key"].as_str().unwrap_or_default());
    let moved = done(&assistant, "reschedule_followup", json!({"key": followup, "at": "2031-01-01T09:00:00Z"})).await?;
    assert_eq!((&moved["outcome"], &moved["status"]), (&json!("done"), &json!("pending")));
    let listed = done(&assistant, "list_followups", json!({"prospect": "p1"})).await?;
    assert_eq!((&listed["items"][0]["key"], listed["items"].as_array().map(Vec::len)), (&json!(followup), Some(1)));
    assert!(listed["items"][0]["scheduled_for"].as_str().unwrap_or_default().starts_with("2031-01-01"), "{listed}");
    assert_eq!(listed["items"][0]["payload"]["untrusted"], true, "what a follow-up says is quoted");
    assert_eq!(done(&assistant, "list_followups", json!({"prospect": "p2"})).await?["items"], json!([]));
    done(&assistant, "cancel_followup", json!({"key": followup, "reason": "they called"})).await?;
    assert_eq!(stage.text("select status from scheduled_actions").await?, "cancelled");
    let again = done(&assistant, "cancel_followup", json!({"key": followup, "reason": "they called"})).await?;
    assert_eq!(again["outcome"], "already");
    let unknown = json!({"key": "00000000-0000-0000-0000-000000000000", "reason": "x"});
    assert_eq!(refused(&assistant, "cancel_followup", unknown).await?.0, "gone");
    assert_eq!(refused(&assistant, "reschedule_followup", json!({"key": followup, "at": "tomorrow"})).await?.0, "invalid");

    let backend = stage.service.backend();
    let key = backend.enqueue("jobs", Some("mail"), &json!({"to": "ada"})).await?;
    let row = backend.show("jobs", &key).await?.expect("there");
    assert_eq!((row.state.as_str(), row.kind.as_deref(), &row.payload), ("ready", Some("mail"), &json!({"to": "ada"})));
    assert_eq!(backend.show("jobs", "999").await?, None);
    assert_eq!(backend.show("jobs", "nonsense").await?, None);
    assert!(backend.enqueue("dumps", Some("mail"), &json!({})).await.is_err());
    let item = stage.other_agent().await?.remove(0);
    assert_eq!(backend.show("jobs", &key).await?.expect("there").state, "running");
    assert_eq!(backend.due("jobs", None, 10).await?, []);
    stage.age("6 minutes").await?;
    assert_eq!(backend.due("jobs", Some("mail"), 10).await?[0].state, "expired");
    stage.jobs().fail(&item.held(), &gleaner::Failure::new("broken").for_good()).await?;
    let row = backend.show("jobs", &key).await?.expect("there");
    assert_eq!((row.state.as_str(), &row.error["message"], row.attempts), ("dead", &json!("broken"), 1));
    Ok(())
}

#[tokio::test]
async fn an_assistant_works_at_our_server() -> Result<()> {
    an_assistant_works(Over::Native).await
}

#[tokio::test]
async fn an_assistant_works_at_a_supabase_project() -> Result<()> {
    an_assistant_works(Over::Rpc).await
}

#[tokio::test]
async fn grants_reach_as_far_at_a_database() -> Result<()> {
    grants_reach_as_far(Over::Direct).await
}

#[tokio::test]
async fn grants_reach_as_far_at_our_server() -> Result<()> {
    grants_reach_as_far(Over::Native).await
}

#[tokio::test]
async fn grants_reach_as_far_at_a_supabase_project() -> Result<()> {
    grants_reach_as_far(Over::Rpc).await
}
