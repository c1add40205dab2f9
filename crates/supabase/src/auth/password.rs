//! Passwords: hashed with argon2id, off the threads that handle requests, and only a few at once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use serde::Deserialize;
use tokio::sync::Semaphore;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// 19 MiB, two passes, one lane: what OWASP recommends for argon2id.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// How many may wait for a turn, and how long.
const QUEUE: usize = 256;
const PATIENCE: Duration = Duration::from_secs(10);

/// A hash that fits no password. It is checked when there is no user, so that the response takes as long.
const NO_ACCOUNT: &str = "$argon2id$v=19$m=19456,t=2,p=1$Tm9ib2R5J3Mgc2FsdCBpcyB0aGlz$m6kLPGWhmaLBb7YBbfA3pz2b7lLbQeIWzyl0PyqT8G0";

/// A password as typed. It is wiped from memory after use and never logged.
#[derive(Clone, Deserialize, Zeroize, ZeroizeOnDrop)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A random password that is shown once: 120 random bits, in groups that can be typed.
    pub fn random() -> Self {
        // No letters that look like digits.
        const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
        let letter = |byte: u8| char::from(LETTERS[usize::from(byte % 32)]);
        let groups: Vec<String> = random::<24>().chunks(6).map(|group| group.iter().map(|byte| letter(*byte)).collect()).collect();
        Self(groups.join("-"))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// Random bytes that cannot be guessed.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness nothing here is safe, so this panics.
    OsRng.try_fill_bytes(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// Too many passwords are waiting to be checked.
#[derive(Debug, thiserror::Error)]
#[error("too many passwords to check at once")]
pub struct Busy;

/// Hashes and checks a few passwords at a time: each takes 19 MiB and a core for a while, and a flood of requests must not use them
/// all.
#[derive(Debug)]
pub struct Hasher {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    checked: AtomicU64,
}

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl Hasher {
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { turns: Arc::new(Semaphore::new(cores.clamp(1, 4))), waiting: AtomicUsize::new(0), checked: AtomicU64::new(0) }
    }

    /// The hash to store, in PHC form.
    pub async fn hash(&self, password: Password) -> Result<String, Busy> {
        self.take_turn(move || hash(&password)).await
    }

    /// Whether the password is the one that was hashed. Without a hash the result is false, and takes as long.
    pub async fn check(&self, password: Password, hash: Option<String>) -> Result<bool, Busy> {
        self.checked.fetch_add(1, Ordering::Relaxed);
        self.take_turn(move || {
            let fits = fits(&password, hash.as_deref().unwrap_or(NO_ACCOUNT));
            fits && hash.is_some()
        })
        .await
    }

    /// How many passwords were checked so far.
    pub fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    async fn take_turn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Busy> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= QUEUE {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Busy);
        }
        let turn = tokio::time::timeout(PATIENCE, Arc::clone(&self.turns).acquire_owned()).await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let turn = turn.map_err(|_| Busy)?.map_err(|_| Busy)?;
        let work = move || {
            // Held by the thread and not by the request: a caller that disconnects does not free the turn early.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| Busy)
    }
}

fn argon2id() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("our own parameters are valid");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash(password: &Password) -> String {
    let salt = SaltString::encode_b64(&random::<16>()).expect("sixteen bytes make a salt");
    argon2id().hash_password(password.0.as_bytes(), &salt).expect("a password of bounded length can be hashed").to_string()
}

/// Imported users have bcrypt hashes. A hash that cannot be parsed, or that would take all memory, fits no password.
fn fits(password: &Password, hash: &str) -> bool {
    if hash.starts_with("$2") {
        let affordable = hash.parse::<bcrypt::HashParts>().is_ok_and(|parts| parts.get_cost() <= 16);
        return affordable && bcrypt::verify(password.0.as_bytes(), hash).unwrap_or(false);
    }
    PasswordHash::new(hash).is_ok_and(|hash| {
        let affordable = Params::try_from(&hash).is_ok_and(|params| params.m_cost() <= 1 << 18 && params.t_cost() <= 32);
        affordable && argon2id().verify_password(password.0.as_bytes(), &hash).is_ok()
    })
}

/// Whether a hash has the current parameters. If not, the next sign-in replaces it.
pub(super) fn is_current(hash: &str) -> bool {
    hash.starts_with(&format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}$"))
}

#[cfg(test)]
mod tests;
