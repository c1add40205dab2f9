//! Acts of a holder. A stale lease is always refused.

use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::{Claim, Completion, Error, Failure, Held, Outcome, Progress};
use serde_json::json;

use super::promises;
use super::stage::{Stage, outcomes, take};

promises!(
    every_act_does_what_it_says,
    a_failed_row_waits_for_the_given_time,
    a_stale_lease_is_refused_by_every_act,
    a_row_that_is_not_there_is_gone,
    a_repeated_completion_is_recognised,
    one_stale_row_of_a_batch_spoils_no_other,
    results_of_any_shape_arrive,
    a_cancelled_row_has_ended_for_its_holder,
    an_unknown_queue_is_named_beside_those_there_are,
);

async fn every_act_does_what_it_says(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    assert_eq!(jobs.queue(), "jobs");
    let key = stage.job("mail", json!({"to": "ada"})).await?;
    let claimed = jobs.claim(&Claim::by("agent-1").kinds(["mail"])).await?;
    let item = claimed.items.into_iter().next().context("claimed")?;
    assert_eq!((item.key.as_str(), item.kind.as_deref(), item.owner.as_deref(), item.attempts), (key.as_str(), Some("mail"), None, 0));
    assert_eq!((item.payload, item.partial), (json!({"to": "ada"}), None));
    let nearly = |left: Duration, seconds: u64| left <= Duration::from_secs(seconds) && left > Duration::from_secs(seconds - 10);
    assert!(nearly(item.lease_for, 300), "{:?}", item.lease_for);
    assert!(nearly(item.deadline_in, 3600), "{:?}", item.deadline_in);
    let (key, lease) = (key.as_str(), item.lease);

    assert_eq!(outcomes(&jobs.start(&[Held::new(key, lease)]).await?), [(key, Outcome::Done)]);
    let (answer, left) =
        jobs.progress(&Held::new(key, lease), &Progress::stage("sending").percent(40.5).partial(json!({"message": "m-1"}))).await?;
    assert_eq!((answer.outcome, answer.status.as_deref()), (Outcome::Done, Some("running")));
    assert!(nearly(left, 300), "{left:?}");
    let shown = stage.text("select progress ->> 'stage' || ' ' || (progress ->> 'percent') from gleaner.jobs").await?;
    assert_eq!(shown, "sending 40.5");

    assert_eq!(outcomes(&jobs.release(&[Held::new(key, lease)]).await?), [(key, Outcome::Done)]);
    let again = take(&*jobs, "mail").await?;
    assert!(again.lease > lease);
    assert_eq!(again.partial, Some(json!({"message": "m-1"})), "what was left behind comes with the row");

    let answer = jobs.snooze(&Held::new(key, again.lease), Duration::from_secs(600)).await?;
    assert_eq!((answer.outcome, answer.status.as_deref()), (Outcome::Done, Some("ready")));
    let wait: i64 = stage.world.count("select extract(epoch from due_at - clock_timestamp())::bigint from gleaner.jobs").await?;
    assert!((590..=601).contains(&wait), "{wait}");
    let told = jobs.explain(key, None).await?.context("explained")?;
    assert_eq!((told["claimable"].clone(), told["id"].to_string()), (json!(false), key.to_owned()));

    stage.world.age("jobs", "20 minutes").await?;
    let last = take(&*jobs, "mail").await?;
    let answers = jobs.complete(&[Completion::new(Held::new(key, last.lease), Some(json!({"sent": true})))]).await?;
    assert_eq!((outcomes(&answers), answers[0].status.as_deref()), (vec![(key, Outcome::Done)], Some("done")));
    assert_eq!(stage.text("select result::text from gleaner.jobs").await?, r#"{"sent": true, "message": "m-1"}"#);
    Ok(())
}

async fn a_failed_row_waits_for_the_given_time(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    let item = stage.held(&*jobs, "mail").await?;
    let mut failure = Failure::new("the server said 503").category("LLMError");
    failure.retry_in = Some(Duration::from_millis(90_500));
    let answer = jobs.fail(&item.held(), &failure).await?;
    assert_eq!((answer.outcome, answer.status.as_deref()), (Outcome::Done, Some("failed")));
    let shown = "select concat_ws(' ', attempts, error ->> 'type', error ->> 'message') from gleaner.jobs";
    assert_eq!(stage.text(shown).await?, "1 LLMError the server said 503");
    let wait: i64 = stage.world.count("select extract(epoch from due_at - clock_timestamp())::bigint from gleaner.jobs").await?;
    assert!((80..=110).contains(&wait), "{wait}");
    let next = jobs.claim(&Claim::by("agent")).await?.next_due_in.context("something waits")?;
    assert!(next > Duration::from_secs(70), "{next:?}");

    let item = stage.held(&*jobs, "other").await?;
    jobs.fail(&item.held(), &Failure::new("never").for_good()).await?;
    assert_eq!(stage.text("select coalesce(due_at::text, 'dead') from gleaner.jobs where kind = 'other'").await?, "dead");
    Ok(())
}

async fn a_stale_lease_is_refused_by_every_act(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    let stale = stage.held(&*jobs, "mail").await?;
    // Its lease expires and another agent claims the item.
    stage.world.age("jobs", "20 minutes").await?;
    let holder = take(&*jobs, "mail").await?;
    assert_eq!(holder.key, stale.key);
    let (key, lease) = (stale.key.as_str(), stale.lease);
    assert_eq!(jobs.progress(&Held::new(key, lease), &Progress::default().percent(1.0)).await?.0.outcome, Outcome::Lost);
    assert_eq!(
        outcomes(&jobs.complete(&[Completion::new(Held::new(key, lease), Some(json!({"late": 1})))]).await?),
        [(key, Outcome::Lost)]
    );
    assert_eq!(jobs.fail(&Held::new(key, lease), &Failure::new("late")).await?.outcome, Outcome::Lost);
    assert_eq!(jobs.snooze(&Held::new(key, lease), Duration::from_secs(60)).await?.outcome, Outcome::Lost);
    assert_eq!(outcomes(&jobs.release(&[Held::new(key, lease)]).await?), [(key, Outcome::Lost)]);
    assert_eq!(outcomes(&jobs.start(&[Held::new(key, lease)]).await?), [(key, Outcome::Lost)]);
    assert_eq!(jobs.ended(&[Held::new(key, lease), Held::new(key, holder.lease)]).await?, [Held::new(key, lease)]);
    assert_eq!(
        outcomes(&jobs.complete(&[Completion::new(Held::new(key, holder.lease), None)]).await?),
        [(key, Outcome::Done)],
        "the holder is unharmed"
    );
    Ok(())
}

async fn a_row_that_is_not_there_is_gone(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    assert_eq!(jobs.progress(&Held::new("999", 1), &Progress::default()).await?.0.outcome, Outcome::Gone);
    assert_eq!(jobs.fail(&Held::new("999", 1), &Failure::new("x")).await?.outcome, Outcome::Gone);
    assert_eq!(outcomes(&jobs.complete(&[Completion::new(Held::new("999", 1), None)]).await?), [("999", Outcome::Gone)]);
    assert_eq!(jobs.explain("999", None).await?, None);
    Ok(())
}

async fn a_repeated_completion_is_recognised(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    let item = stage.held(&*jobs, "mail").await?;
    let done = [Completion::new(item.held(), Some(json!({"sent": true})))];
    assert_eq!(outcomes(&jobs.complete(&done).await?), [(item.key.as_str(), Outcome::Done)]);
    assert_eq!(outcomes(&jobs.complete(&done).await?), [(item.key.as_str(), Outcome::Already)]);
    Ok(())
}

async fn one_stale_row_of_a_batch_spoils_no_other(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    for n in 0..4 {
        stage.job("mail", json!({"n": n})).await?;
    }
    let items = jobs.claim(&Claim::by("agent").limit(4)).await?.items;
    assert_eq!(items.len(), 4);
    let done: Vec<_> = items
        .iter()
        .enumerate()
        .map(|(n, item)| {
            let lease = if n == 2 { 1 } else { item.lease };
            Completion::new(Held::new(&item.key, lease), Some(json!({"n": item.payload["n"]})))
        })
        .collect();
    let mut answers = jobs.complete(&done).await?;
    answers.sort_by_key(|answer| answer.key.parse::<i64>().ok());
    let lost = items[2].key.as_str();
    for (key, outcome) in outcomes(&answers) {
        assert_eq!(outcome, if key == lost { Outcome::Lost } else { Outcome::Done }, "{key}");
    }
    assert_eq!(answers.len(), 4);
    assert_eq!(stage.world.count("select count(*) from gleaner.jobs where status = 'done' and result ->> 'n' = payload ->> 'n'").await?, 3);
    Ok(())
}

async fn results_of_any_shape_arrive(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    let shapes = [Some(json!([[1, 2], ["three"]])), Some(json!("text")), Some(json!(7)), None, Some(json!({"a": [1]}))];
    for n in 0..shapes.len() {
        stage.job("mail", json!({"n": n})).await?;
    }
    let items = jobs.claim(&Claim::by("agent").limit(5)).await?.items;
    let shape = |item: &gleaner::Item| shapes[item.payload["n"].as_u64().unwrap_or_default() as usize].clone();
    // Once with the array among the results and once without.
    for part in [&items[..2], &items[2..]] {
        let done: Vec<_> = part.iter().map(|item| Completion::new(item.held(), shape(item))).collect();
        assert!(jobs.complete(&done).await?.iter().all(|answer| answer.outcome == Outcome::Done));
    }
    for item in &items {
        let kept = stage.world.text(&format!("select result::text from gleaner.jobs where id = {}", item.key)).await?;
        assert_eq!(kept.map(|text| serde_json::from_str::<serde_json::Value>(&text)).transpose()?, shape(item));
    }
    Ok(())
}

async fn a_cancelled_row_has_ended_for_its_holder(stage: &Stage) -> Result<()> {
    let jobs = stage.open("jobs").await?;
    let (one, other) = (stage.held(&*jobs, "mail").await?, stage.held(&*jobs, "mail").await?);
    let held = [one.held(), other.held()];
    assert_eq!(jobs.ended(&held).await?, []);
    assert_eq!(outcomes(&jobs.cancel(&[&one.key], Some("ordered twice")).await?), [(one.key.as_str(), Outcome::Done)]);
    assert_eq!(jobs.ended(&held).await?, [one.held()]);
    assert_eq!(jobs.progress(&one.held(), &Progress::default()).await?.0.outcome, Outcome::Lost);
    jobs.complete(&[Completion::new(other.held(), None)]).await?;
    assert_eq!(jobs.ended(&held).await?.len(), 2, "finished is ended too");
    assert_eq!(jobs.ended(&[]).await?, []);
    Ok(())
}

async fn an_unknown_queue_is_named_beside_those_there_are(stage: &Stage) -> Result<()> {
    assert_eq!(stage.place.queues().await?, ["activities", "dumps", "followups", "jobs", "polls", "runs", "schedules"]);
    let error = stage.place.open("jbos").await.map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::UnknownQueue { name, known } if name == "jbos" && known.contains(&"jobs".to_owned())), "{error}");
    assert!(!error.is_transient());
    Ok(())
}
