//! Rate limits per key, by `governor`, with two additions: an attempt can be given back, and a full store drops those that have
//! used least. With a plain store a flood of new addresses would erase the count of a persistent attacker.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::{Quota, RateLimiter};

/// The most keys kept, so that a flood of addresses costs time and not memory.
const MOST: usize = 100_000;

#[derive(Debug)]
pub(super) struct Buckets<K: Hash + Eq + Copy, C: Clock = DefaultClock> {
    limiter: RateLimiter<K, Store<K>, C, NoOpMiddleware<C::Instant>>,
    store: Store<K>,
    clock: C,
    refill: Nanos,
}

impl<K: Hash + Eq + Copy> Buckets<K> {
    /// `size` attempts at once, and one more after each `refill`.
    pub(super) fn new(size: u32, refill: Duration) -> Self {
        Self::with_clock(size, refill, DefaultClock::default())
    }
}

impl<K: Hash + Eq + Copy, C: Clock + Clone> Buckets<K, C> {
    fn with_clock(size: u32, refill: Duration, clock: C) -> Self {
        let quota = Quota::with_period(refill).expect("a refill takes time").allow_burst(NonZeroU32::new(size).expect("a bucket has room"));
        let store = Store(Arc::default());
        Self { limiter: RateLimiter::new(quota, Store(Arc::clone(&store.0)), clock.clone()), store, clock, refill: refill.into() }
    }

    /// Takes one, or returns how long until one is available.
    pub(super) fn take(&self, key: K) -> Result<(), Duration> {
        self.limiter.check_key(&key).map_err(|not_yet| not_yet.wait_time_from(self.clock.now()))
    }

    pub(super) fn give_back(&self, key: K) {
        if let Some(full_at) = self.store.lock().get_mut(&key) {
            *full_at = full_at.saturating_sub(self.refill);
        }
    }
}

/// When the bucket of each key will be full again: the later, the more was taken from it.
#[derive(Debug)]
struct Store<K>(Arc<Mutex<HashMap<K, Nanos>>>);

impl<K> Store<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Nanos>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq + Copy> StateStore for Store<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut full_at = self.lock();
        if full_at.len() >= MOST && !full_at.contains_key(key) {
            make_room(&mut full_at);
        }
        let (answer, next) = measure(full_at.get(key).copied())?;
        full_at.insert(*key, next);
        Ok(answer)
    }
}

/// Drops the half that has used least, and with it those who have used as much as the median.
fn make_room<K: Hash + Eq>(full_at: &mut HashMap<K, Nanos>) {
    let mut all: Vec<u64> = full_at.values().map(|at| at.as_u64()).collect();
    let middle = all.len() / 2;
    let median = *all.select_nth_unstable(middle).1;
    full_at.retain(|_, at| at.as_u64() > median);
}

#[cfg(test)]
mod tests;
