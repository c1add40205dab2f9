//! How a worker behaves.

use std::time::Duration;

use uuid::Uuid;

use super::pace::{Backoff, Poll, Wake};
use super::suspend::WallClock;

/// For [`Worker::new`](super::Worker::new); [`Builder`](super::Builder) has more to choose. The defaults are those of the polling strategy: 5 s, half as long
/// again each time, at most 30 s; while bells are heard, 30 s to 60 s.
#[derive(Debug, Clone)]
pub struct Options {
    /// Known to the database as the holder. New at each process start by default.
    pub agent: String,
    /// Handlers that run at once.
    pub concurrency: usize,
    /// Rows taken by one claim, beyond what runs at once.
    pub prefetch: usize,
    pub owner: Option<String>,
    pub kinds: Option<Vec<String>>,
    pub poll_base: Duration,
    pub poll_max: Duration,
    pub poll_factor: f64,
    /// How long running handlers may take to finish when asked to stop; then their rows are released.
    pub grace: Duration,
    /// Listen for bells. Without it only the poll finds work.
    pub listen: bool,
    /// Stop when a claim comes back empty and nothing is running.
    pub until_empty: bool,
    /// Stop after this many items.
    pub take: Option<usize>,
    /// How often running rows are looked at, all in one statement, to learn that one was cancelled.
    pub watch: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let (poll, settings) = (Poll::default(), Settings::default());
        Self {
            agent: settings.agent,
            concurrency: 4,
            prefetch: settings.prefetch,
            owner: None,
            kinds: None,
            poll_base: poll.base,
            poll_max: poll.max,
            poll_factor: poll.factor,
            grace: settings.grace,
            listen: true,
            until_empty: false,
            take: None,
            watch: settings.watch,
        }
    }
}

/// What a run needs to know.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) agent: String,
    pub(super) owner: Option<String>,
    pub(super) kinds: Option<Vec<String>>,
    pub(super) prefetch: usize,
    /// Results that are finished and not yet written: with so many, no more handlers begin.
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
            unwritten: 1000,
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

impl From<Options> for Settings {
    fn from(options: Options) -> Self {
        Self {
            agent: options.agent,
            owner: options.owner,
            kinds: options.kinds,
            prefetch: options.prefetch,
            grace: options.grace,
            watch: options.watch,
            poll: Poll {
                base: options.poll_base,
                max: options.poll_max,
                factor: options.poll_factor,
                pushed_base: options.poll_max,
                pushed_max: options.poll_max * 2,
                ..Poll::default()
            },
            wake: if options.listen { Wake::Hybrid } else { Wake::PollOnly },
            until_empty: options.until_empty,
            take: options.take,
            ..Self::default()
        }
    }
}
