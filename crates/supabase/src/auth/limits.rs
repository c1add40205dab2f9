//! Rate limits for sign-in.
//!
//! Attempts are counted by where they come from, never by the account they target: an attacker who guesses a user's password only
//! slows itself down, and that user's own sign-in from elsewhere is not affected. Buckets are per server and in memory: several
//! servers permit that many times as much, which is still far too little for guessing.
//!
//! This is our own code, unlike the limits of webhooks: an attempt is counted before its result is known and given back when it was
//! right, and a flood of new addresses must not push out the worst guesser. `governor` can do neither.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::error::{Failure, Result};

type Network = Option<IpAddr>;
type Account = [u8; 32];

/// The most entries kept, so that a flood of addresses costs time and not memory.
const MOST: usize = 100_000;

#[derive(Debug)]
pub(super) struct Limits {
    /// Wrong passwords for one account from one network: ten, then two a minute.
    guesses: Buckets<(Network, Account)>,
    /// Refused requests from one network: sixty, then one a second.
    refusals: Buckets<Network>,
    /// Requests for links and accounts from one network: ten, then one a minute.
    requests: Buckets<Network>,
    /// Mails to one address: three, then one in ten minutes. The earlier mails stay valid meanwhile.
    mails: Buckets<Account>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            guesses: Buckets::new(10.0, 1.0 / 30.0),
            refusals: Buckets::new(60.0, 1.0),
            requests: Buckets::new(10.0, 1.0 / 60.0),
            mails: Buckets::new(3.0, 1.0 / 600.0),
        }
    }
}

/// An attempt that is counted before its result is known. Otherwise a thousand concurrent attempts would all count as the first.
#[derive(Debug)]
#[must_use]
pub(super) struct Try<'a> {
    limits: &'a Limits,
    network: Network,
    account: Option<Account>,
}

impl Limits {
    /// An attempt to sign in as `account` from `network`.
    pub(super) fn try_password(&self, network: Network, email: &str) -> Result<Try<'_>> {
        let account = account(email);
        self.guesses.take((network, account)).map_err(Failure::too_many)?;
        if let Err(wait) = self.refusals.take(network) {
            self.guesses.give_back((network, account));
            return Err(Failure::too_many(wait));
        }
        Ok(Try { limits: self, network, account: Some(account) })
    }

    /// An attempt with a token that cannot be guessed. The limit only protects the database from load.
    pub(super) fn try_token(&self, network: Network) -> Result<Try<'_>> {
        self.refusals.take(network).map_err(Failure::too_many)?;
        Ok(Try { limits: self, network, account: None })
    }

    /// A request for an account or a link.
    pub(super) fn request(&self, network: Network) -> Result<()> {
        self.requests.take(network).map_err(Failure::too_many)
    }

    /// A mail about to be sent to an address, whether or not it has an account.
    pub(super) fn mail(&self, email: &str) -> Result<()> {
        let over = |wait| Failure::too_many(wait).renamed("over_email_send_rate_limit", "email rate limit exceeded");
        self.mails.take(account(email)).map_err(over)
    }
}

impl Try<'_> {
    /// The attempt was right, or was not checked at all.
    pub(super) fn does_not_count(self) {
        self.limits.refusals.give_back(self.network);
        if let Some(account) = self.account {
            self.limits.guesses.give_back((self.network, account));
        }
    }
}

/// A fixed-size key, however long the address that was sent.
fn account(email: &str) -> Account {
    Sha256::digest(email).into()
}

#[derive(Debug)]
struct Buckets<K> {
    size: f64,
    per_second: f64,
    levels: Mutex<HashMap<K, Level>>,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    tokens: f64,
    at: Instant,
}

impl<K: Hash + Eq + Copy> Buckets<K> {
    fn new(size: f64, per_second: f64) -> Self {
        Self { size, per_second, levels: Mutex::default() }
    }

    fn now(&self, level: Level, now: Instant) -> f64 {
        (level.tokens + now.saturating_duration_since(level.at).as_secs_f64() * self.per_second).min(self.size)
    }

    /// Takes one, or returns how long until one is available.
    fn take(&self, key: K) -> Result<(), Duration> {
        self.take_at(key, Instant::now())
    }

    fn take_at(&self, key: K, now: Instant) -> Result<(), Duration> {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if levels.len() >= MOST && !levels.contains_key(&key) {
            self.make_room(&mut levels, now);
        }
        let level = levels.entry(key).or_insert(Level { tokens: self.size, at: now });
        let tokens = self.now(*level, now);
        let (left, answer) =
            if tokens >= 1.0 { (tokens - 1.0, Ok(())) } else { (tokens, Err(Duration::from_secs_f64((1.0 - tokens) / self.per_second))) };
        *level = Level { tokens: left, at: now };
        answer
    }

    fn give_back(&self, key: K) {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(level) = levels.get_mut(&key) {
            level.tokens = (level.tokens + 1.0).min(self.size);
            // The bucket is full again, so there is nothing to remember.
            if self.now(*level, Instant::now()) >= self.size {
                levels.remove(&key);
            }
        }
    }

    /// Full buckets are dropped. When all are in use, those with the fewest failures are dropped: a flood of new addresses must not
    /// erase the count of a persistent attacker.
    fn make_room(&self, levels: &mut HashMap<K, Level>, now: Instant) {
        levels.retain(|_, level| self.now(*level, now) < self.size);
        let mut limit = self.size - 1.0;
        while levels.len() >= MOST && limit >= 0.0 {
            levels.retain(|_, level| self.now(*level, now) < limit);
            limit -= 1.0;
        }
        if levels.len() >= MOST {
            levels.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Network = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));
    const THERE: Network = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)));

    #[test]
    fn guessing_is_slowed_down_and_nobody_elsewhere_notices() {
        let limits = Limits::default();
        for _ in 0..10 {
            drop(limits.try_password(HERE, "ada@example.com").expect("ten are free"));
        }
        assert!(limits.try_password(HERE, "ada@example.com").is_err());
        assert!(limits.try_password(THERE, "ada@example.com").is_ok(), "the account itself is never locked");
        assert!(limits.try_password(HERE, "bob@example.com").is_ok(), "nor are its neighbours");
    }

    #[test]
    fn a_right_password_does_not_count() {
        let limits = Limits::default();
        for _ in 0..1000 {
            limits.try_password(HERE, "ada@example.com").expect("never refused").does_not_count();
        }
    }

    #[test]
    fn many_accounts_from_one_place_are_slowed_down_too() {
        let limits = Limits::default();
        let tried = (0..100).filter(|n| limits.try_password(HERE, &format!("{n}@example.com")).is_ok()).count();
        assert!((60..65).contains(&tried), "{tried}");
    }

    #[test]
    fn a_bucket_fills_again() {
        let buckets: Buckets<u8> = Buckets::new(2.0, 0.5);
        let begun = Instant::now();
        assert!(buckets.take_at(1, begun).is_ok() && buckets.take_at(1, begun).is_ok());
        assert_eq!(buckets.take_at(1, begun), Err(Duration::from_secs(2)));
        assert!(buckets.take_at(1, begun + Duration::from_secs(2)).is_ok());
        assert!(buckets.take_at(1, begun + Duration::from_secs(2)).is_err());
    }

    #[test]
    fn a_flood_of_addresses_costs_no_memory_and_does_not_free_a_guesser() {
        let buckets: Buckets<u32> = Buckets::new(10.0, 1e-6);
        let now = Instant::now();
        for _ in 0..10 {
            let _ = buckets.take_at(u32::MAX, now);
        }
        for key in 0..u32::try_from(MOST).expect("small") + 10 {
            let _ = buckets.take_at(key, now);
        }
        assert!(buckets.levels.lock().expect("whole").len() <= MOST);
        assert!(buckets.take_at(u32::MAX, now).is_err());
    }
}
