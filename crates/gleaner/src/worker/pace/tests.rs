use super::*;

fn pace(wake: Wake) -> Pace {
    Pace::new(Poll::default(), Backoff::default(), wake)
}

fn waits(pace: &mut Pace, pushed: bool, n: usize) -> Vec<f64> {
    (0..n).filter_map(|_| pace.empty(pushed, None)).map(|wait| wait.as_secs_f64()).collect()
}

fn follow(waits: &[f64], table: &[f64]) {
    for (wait, documented) in waits.iter().zip(table) {
        assert!(*wait >= documented - 0.01 && *wait <= documented * 1.1 + 0.01, "{waits:?} is not {table:?}");
    }
    assert_eq!(waits.len(), table.len());
}

#[test]
fn the_poll_backs_off_from_5_to_30_seconds() {
    let mut pace = pace(Wake::PollOnly);
    let table = [5.0, 5.0, 7.5, 11.25, 16.87, 25.31, 30.0, 30.0];
    follow(&waits(&mut pace, false, 8), &table);
    pace.found();
    follow(&waits(&mut pace, false, 8), &table);
}

#[test]
fn while_push_works_the_poll_goes_from_30_to_60_seconds() {
    follow(&waits(&mut pace(Wake::Hybrid), true, 5), &[30.0, 30.0, 45.0, 60.0, 60.0]);
}

#[test]
fn a_push_that_is_lost_starts_the_other_table() {
    let mut pace = pace(Wake::PollOnly);
    waits(&mut pace, true, 6);
    follow(&waits(&mut pace, false, 3), &[5.0, 5.0, 7.5]);
}

#[test]
fn where_rows_may_arrive_without_a_notification_the_poll_stays_below_a_second() {
    let waits = waits(&mut pace(Wake::Hybrid), false, 20);
    assert!(waits.iter().all(|wait| *wait <= 1.0), "{waits:?}");
}

#[test]
fn the_same_seed_waits_the_same() {
    let waits = |seed| {
        let mut pace = Pace::new(Poll { seed, ..Poll::default() }, Backoff::default(), Wake::Hybrid);
        waits(&mut pace, false, 20)
    };
    assert_eq!(waits(Some(7)), waits(Some(7)));
    assert_ne!(waits(Some(7)), waits(Some(8)));
}

#[test]
fn a_scheduled_row_is_never_slept_past() {
    for wake in [Wake::Hybrid, Wake::PushOnly] {
        assert_eq!(pace(wake).empty(true, Some(Duration::from_millis(700))), Some(Duration::from_millis(700)));
    }
}

#[test]
fn a_row_that_is_due_and_cannot_be_had_is_not_asked_for_without_pause() {
    let mut pace = pace(Wake::Hybrid);
    let waits: Vec<Duration> = (0..5).filter_map(|_| pace.empty(true, Some(Duration::ZERO))).collect();
    assert_eq!(waits, [50, 200, 1000, 1000, 1000].map(Duration::from_millis));
}

#[test]
fn a_ring_that_finds_nothing_looks_again() {
    let mut pace = pace(Wake::Hybrid);
    pace.notified();
    assert_eq!([(); 3].map(|()| pace.empty(true, None)), Pace::AGAIN.map(Some));
    assert!(pace.empty(true, None) >= Some(Duration::from_secs(30)));
}

#[test]
fn push_only_waits_for_a_push_and_nothing_else() {
    let mut pace = pace(Wake::PushOnly);
    assert_eq!(pace.empty(true, None), None);
    pace.notified();
    assert_eq!([(); 4].map(|()| pace.empty(true, None)), [50, 200, 1000, 0].map(|ms| (ms > 0).then(|| Duration::from_millis(ms))));
}

#[test]
fn errors_wait_2_4_8_and_then_10_seconds() {
    let mut pace = pace(Wake::Hybrid);
    for least in [2.0, 4.0, 8.0, 10.0, 10.0] {
        let wait = pace.after_error().as_secs_f64();
        assert!(wait >= least && wait <= least * 1.25, "{wait} is not {least}");
    }
    pace.found();
    assert!(pace.after_error() < Duration::from_secs(3));
}
