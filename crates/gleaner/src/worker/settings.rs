//! How a worker behaves.

use std::time::Duration;

use uuid::Uuid;

use super::pace::{Backoff, Poll, Wake};
use super::suspend::WallClock;

/// The settings of a run.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) agent: String,
    pub(super) owner: Option<String>,
    pub(super) kinds: Option<Vec<String>>,
    pub(super) prefetch: usize,
    /// The most rows of one claim.
    pub(super) batch: usize,
    pub(super) early: Duration,
    pub(super) hold: Option<Duration>,
    /// The limit on results that are finished and not yet written. At this limit, no more handlers begin.
    pub(super) unwritten: usize,
    pub(super) grace: Duration,
    pub(super) watch: Duration,
    pub(super) poll: Poll,
    pub(super) backoff: Backoff,
    pub(super) wake: Wake,
    pub(super) until_empty: bool,
    pub(super) take: Option<usize>,
    pub(super) wall: WallClock,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            agent: Uuid::now_v7().to_string(),
            owner: None,
            kinds: None,
            prefetch: 0,
            batch: usize::MAX,
            early: Duration::ZERO,
            hold: None,
            unwritten: 5000,
            grace: Duration::from_secs(30),
            watch: Duration::from_secs(5),
            poll: Poll::default(),
            backoff: Backoff::default(),
            wake: Wake::Hybrid,
            until_empty: false,
            take: None,
            wall: WallClock::default(),
        }
    }
}
