use std::time::{Duration, Instant};

use anyhow::Result;
use gleaner_agent::mcp::{Session, Settings};
use serde_json::{Value, json};

use super::stage::{Stage, done, refused, stage};

async fn until(stage: &Stage, sql: &str, wanted: &str) -> Result<()> {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let is = stage.text(sql).await?;
        if is == wanted {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < patience, "{sql} gives {is:?} and not {wanted:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_end_of_a_session_gives_back_what_it_held() -> Result<()> {
    let stage = stage().await?;
    let assistant = stage.assistant().await?;
    for _ in 0..3 {
        stage.job("mail", json!({})).await?;
    }
    let claimed = done(&assistant, "claim", json!({"queue": "jobs", "limit": 3})).await?;
    assert_eq!(claimed["items"].as_array().map(Vec::len), Some(3));
    let held = |n: usize| json!({"queue": "jobs", "key": claimed["items"][n]["key"], "lease": claimed["items"][n]["lease"]});
    done(&assistant, "complete", held(0)).await?;
    assistant.cancel().await?;
    // Neither an attempt nor a lost lease is counted.
    until(&stage, "select string_agg(status || attempts || lost, ' ' order by id) from gleaner.jobs", "done00 ready00 ready00").await?;
    let next = stage.assistant().await?;
    assert_eq!(refused(&next, "complete", held(1)).await?.0, "lost");
    Ok(())
}

#[tokio::test]
async fn every_session_is_an_agent_of_its_own() -> Result<()> {
    let stage = stage().await?;
    let (ada, grace) = (stage.assistant().await?, stage.assistant().await?);
    for _ in 0..2 {
        stage.job("mail", json!({})).await?;
    }
    let first = done(&ada, "claim", json!({"queue": "jobs"})).await?;
    let second = done(&grace, "claim", json!({"queue": "jobs"})).await?;
    assert_ne!(first["agent"], second["agent"]);
    assert_eq!(done(&ada, "list", json!({})).await?["held"][0]["key"], first["items"][0]["key"]);
    // One session ends, and the other is not affected.
    grace.cancel().await?;
    until(&stage, "select string_agg(status, ' ' order by status) from gleaner.jobs", "ready running").await?;
    let held = json!({"queue": "jobs", "key": first["items"][0]["key"], "lease": first["items"][0]["lease"]});
    done(&ada, "complete", held).await?;
    Ok(())
}

#[tokio::test]
async fn the_end_of_the_process_gives_back_everything() -> Result<()> {
    let stage = stage().await?;
    let (with, without) = (stage.assistant().await?, stage.sessionless().await?);
    for _ in 0..2 {
        stage.job("mail", json!({})).await?;
    }
    done(&with, "claim", json!({"queue": "jobs"})).await?;
    done(&without, "claim", json!({"queue": "jobs"})).await?;
    // The request ended long ago, and its assistant still holds the item.
    assert_eq!(stage.text("select count(*) from gleaner.jobs where status = 'running'").await?, "2");
    assert_eq!(stage.service.close().await, 2);
    assert_eq!(stage.text("select count(*) from gleaner.jobs where status = 'ready'").await?, "2");
    Ok(())
}

#[tokio::test]
async fn a_claim_whose_caller_left_is_given_back() -> Result<()> {
    let stage = stage().await?;
    stage.job("mail", json!({})).await?;
    let session = Session::standing(&stage.service);
    stage.service.transport("jobs").await.expect("there");
    // The client sends the request and disconnects before the answer.
    let mut claim = Box::pin(session.call("claim", json!({"queue": "jobs"})));
    assert!(futures_util::poll!(claim.as_mut()).is_pending());
    drop(claim);
    until(&stage, "select status || attempts || lost || (coalesce(lease, 0) > 0) from gleaner.jobs", "ready00true").await?;
    assert_eq!(stage.service.renewal().held(session.agent()), []);
    Ok(())
}

/// A queue whose leases last one second, and a `patience` of three seconds for its assistants.
async fn hasty() -> Result<Stage> {
    let stage = Stage::with(Settings { patience: Duration::from_secs(3), ..Settings::default() }).await?;
    stage
        .run("create table errand (id bigint generated always as identity primary key, state text not null default 'new', note text)")
        .await?;
    let toml = "table = 'public.errand'\nname = 'errands'\nhold = '1 second'\ndeadline = '1 minute'\npayload = 'note'\n\
                [status]\ncolumn = 'state'\nready = 'new'\nrunning = 'busy'\ndone = 'done'\nfailed = 'failed'\n";
    let declaration = gleaner::Declaration::parse(toml, "errands")?;
    let mut client = gleaner::connect(&stage.url()).await?;
    gleaner::attach::attach(&mut client, &declaration, toml, gleaner::attach::Options { add_words: false }, &|_| {}).await?;
    stage.run("insert into errand (note) values ('think about it')").await?;
    Ok(stage)
}

async fn an_assistant_that_thinks_keeps_its_item(stage: &Stage, assistant: &super::stage::Assistant) -> Result<()> {
    let claimed = done(assistant, "claim", json!({"queue": "errands"})).await?;
    let heard = Instant::now();
    let other = stage.queue("errands").await?;
    let take = async || -> Result<Vec<gleaner::Item>> { Ok(other.claim(&gleaner::Claim::by("other").limit(1)).await?.items) };
    // The assistant is silent for longer than two leases.
    while heard.elapsed() < Duration::from_millis(2200) {
        assert_eq!(take().await?, [], "taken from one who thinks, after {:?}", heard.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let held = |more: Value| {
        let mut held = json!({"queue": "errands", "key": claimed["items"][0]["key"], "lease": claimed["items"][0]["lease"]});
        held.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        held
    };
    done(assistant, "progress", held(json!({"stage": "still here"}))).await?;
    // After that it makes no more calls.
    let heard = Instant::now();
    let taken = loop {
        if let Some(item) = take().await?.pop() {
            break item;
        }
        assert!(heard.elapsed() < Duration::from_secs(20), "kept for one who vanished");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(heard.elapsed() > Duration::from_millis(2900), "taken after {:?}", heard.elapsed());
    assert_eq!(taken.key, claimed["items"][0]["key"]);
    assert_eq!(refused(assistant, "complete", held(json!({}))).await?.0, "lost");
    Ok(())
}

#[tokio::test]
async fn life_is_shown_for_one_who_thinks_and_not_for_one_who_vanished() -> Result<()> {
    let stage = hasty().await?;
    let assistant = stage.assistant().await?;
    an_assistant_that_thinks_keeps_its_item(&stage, &assistant).await
}

#[tokio::test]
async fn the_same_holds_without_sessions() -> Result<()> {
    let stage = hasty().await?;
    let assistant = stage.sessionless().await?;
    an_assistant_that_thinks_keeps_its_item(&stage, &assistant).await
}
