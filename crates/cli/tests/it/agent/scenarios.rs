//! Several users share work by age. Minutes are shortened to seconds by changing the age of the rows.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::{Team, never_within};

#[test]
fn owner_online_each_agent_does_its_own_work() {
    let team = Team::new();
    team.go();
    let (ada, bob) = (team.person("ada"), team.person("bob"));
    let (_a, _b) = (team.agent("ada", &ada, &[]), team.agent("bob", &bob, &[]));
    for _ in 0..3 {
        let (hers, his) = (team.activity(&ada, "note", 0.0), team.activity(&bob, "note", 0.0));
        team.until_completed(&hers);
        team.until_completed(&his);
        assert_eq!((team.until_begun(&hers).who, team.until_begun(&his).who), ("ada".into(), "bob".into()));
    }
    assert_eq!(team.did().len(), 6, "each was done once: {:?}", team.did());
    assert_eq!(team.gleaner.sql("select string_agg(distinct processed_data ->> 'work', ',') is not null from activities"), "t");
}

#[test]
fn owner_offline_its_work_is_left_alone_until_its_threshold() {
    let team = Team::new();
    team.go();
    let (ada, bob) = (team.person("ada"), team.person("bob"));
    let _a = team.agent("ada", &ada, &[]);
    let hers = team.activity(&ada, "note", 0.0);
    team.until_completed(&hers);
    // Bob allows others to take his after a minute, and this has waited for all of it but four seconds.
    let his = team.activity(&bob, "note", 56.0);
    let open_at: f64 =
        team.gleaner.sql(&format!("select extract(epoch from open_at) from activities where id = '{his}'")).parse().expect("a time");
    team.until_completed(&his);
    let taken = team.until_begun(&his);
    assert_eq!(taken.who, "ada");
    assert!(taken.at >= open_at, "taken {} s before its threshold", open_at - taken.at);
    assert!(taken.at < open_at + 10.0, "taken {} s after its threshold", taken.at - open_at);
    // What he keeps to himself stays his, however old it is.
    team.gleaner.sql(&format!("update sales set allow_remote_processing = false where id = {bob}"));
    let private = team.activity(&bob, "note", 600.0);
    never_within(Duration::from_secs(2), "private work was taken", || team.did().iter().any(|done| done.item == private));
}

#[test]
fn crash_in_mid_work_another_agent_takes_over_behind_what_was_finished() {
    let team = Team::new();
    let (ada, bob) = (team.person("ada"), team.person("bob"));
    let a = team.agent("ada", &ada, &[]);
    let call = team.activity(&ada, "call", 0.0);
    crate::support::eventually("the second stage", || team.did().iter().any(|done| done.stage == "work"));
    a.signal(Signal::SIGKILL);
    a.end();

    let _b = team.agent("bob", &bob, &[]);
    never_within(Duration::from_secs(2), "a lease that still holds was broken", || team.did().iter().any(|done| done.who == "bob"));
    // Five minutes without a sign of life: its times move back by as much. The engine's role writes, so no act is meant.
    team.gleaner.sql(
        "begin; set local role gleaner_engine;
         update activities set created_at = created_at - interval '5 minutes', due_at = due_at - interval '5 minutes', locked_at = locked_at - interval '5 minutes',
             deadline_at = deadline_at - interval '5 minutes', open_at = open_at - interval '5 minutes';
         commit",
    );
    crate::support::eventually("bob to take over", || team.did().iter().any(|done| done.who == "bob"));
    team.go();
    team.until_completed(&call);
    let stages: Vec<(String, String)> = team.did().into_iter().map(|done| (done.who, done.stage)).collect();
    let stages: Vec<(&str, &str)> = stages.iter().map(|(who, stage)| (who.as_str(), stage.as_str())).collect();
    assert_eq!(stages, [("ada", "listen"), ("ada", "work"), ("bob", "work")], "a finished stage is not repeated");
    assert_eq!(team.gleaner.sql(&format!("select lost from activities where id = '{call}'")), "1");
    assert!(team.gleaner.sql(&format!("select processed_data from activities where id = '{call}'")).contains("bob"));
}
