use governor::clock::FakeRelativeClock;

use super::*;

#[test]
fn a_bucket_fills_again() {
    let clock = FakeRelativeClock::default();
    let buckets = Buckets::with_clock(2, Duration::from_secs(2), clock.clone());
    assert!(buckets.take(1).is_ok() && buckets.take(1).is_ok());
    assert_eq!(buckets.take(1), Err(Duration::from_secs(2)));
    clock.advance(Duration::from_secs(2));
    assert!(buckets.take(1).is_ok());
    assert!(buckets.take(1).is_err());
}

#[test]
fn what_is_given_back_can_be_taken_again_and_no_more() {
    let buckets = Buckets::with_clock(2, Duration::from_secs(2), FakeRelativeClock::default());
    assert!(buckets.take(1).is_ok() && buckets.take(1).is_ok());
    buckets.give_back(1);
    assert!(buckets.take(1).is_ok());
    assert!(buckets.take(1).is_err());
    // Nothing was taken from this one.
    buckets.give_back(2);
    assert!(buckets.take(2).is_ok() && buckets.take(2).is_ok() && buckets.take(2).is_err());
}

#[test]
fn a_flood_of_addresses_costs_no_memory_and_does_not_free_a_guesser() {
    let buckets = Buckets::with_clock(10, Duration::from_secs(3600), FakeRelativeClock::default());
    for _ in 0..10 {
        let _ = buckets.take(u32::MAX);
    }
    for key in 0..u32::try_from(MOST).expect("small") + 10 {
        let _ = buckets.take(key);
    }
    assert!(buckets.store.lock().len() <= MOST);
    assert!(buckets.take(u32::MAX).is_err());
}
