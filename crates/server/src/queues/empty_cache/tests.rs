use super::*;

fn key(name: &str) -> Key {
    Key::of(&serde_json::json!([name]))
}

/// A query made when every notified row is visible.
fn settled(empty_cache: &EmptyCache, notifications: u64) -> Query {
    empty_cache.begin_query("jobs", notifications);
    std::thread::sleep(SETTLE);
    empty_cache.begin_query("jobs", notifications)
}

#[test]
fn empty_holds_until_a_notification_or_until_something_is_due() {
    let empty_cache = EmptyCache::default();
    let heard = settled(&empty_cache, 3);
    assert!(empty_cache.known(&key("a"), heard).is_none());
    empty_cache.remember(key("a"), heard, None);
    assert!(empty_cache.known(&key("a"), empty_cache.begin_query("jobs", 3)).is_some(), "nothing has happened");
    assert!(empty_cache.known(&key("b"), empty_cache.begin_query("jobs", 3)).is_none(), "another claim");
    assert!(empty_cache.known(&key("a"), empty_cache.begin_query("jobs", 4)).is_none(), "there was a notification");
    empty_cache.remember(key("a"), heard, Some(Duration::ZERO));
    assert!(empty_cache.known(&key("a"), empty_cache.begin_query("jobs", 3)).is_none(), "a row is due");
    assert_eq!(empty_cache.spared(), 1);
}

#[test]
fn a_query_right_after_a_notification_is_cached_for_a_moment_only() {
    let empty_cache = EmptyCache::default();
    empty_cache.remember(key("a"), settled(&empty_cache, 1), None);
    // A notification arrives. Another client's query finds nothing yet, because the row is not visible yet.
    let early = empty_cache.begin_query("jobs", 2);
    let empty = empty_cache.remember(key("a"), early, None);
    assert!(empty.until <= Instant::now() + SETTLE, "waiting claims query again in a moment");
    std::thread::sleep(SETTLE);
    let late = empty_cache.begin_query("jobs", 2);
    assert!(empty_cache.known(&key("a"), late).is_none());
    assert!(empty_cache.remember(key("a"), late, None).until > Instant::now() + SETTLE);
}

#[test]
fn no_more_than_its_measure_is_remembered() {
    let empty_cache = EmptyCache::default();
    let heard = settled(&empty_cache, 1);
    for n in 0..MOST_ENTRIES + 10 {
        empty_cache.remember(key(&n.to_string()), heard, None);
    }
    assert_eq!(empty_cache.empty.lock().expect("no panic holds it").len(), MOST_ENTRIES);
    empty_cache.remember(key("0"), heard, Some(Duration::ZERO));
    assert!(empty_cache.known(&key("0"), heard).is_none(), "what is remembered is still kept up");
}
