//! How long to wait before the next claim: adaptive while there is no work, with back-off after an error.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// What makes a worker claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wake {
    /// Notifications make it fast, and the poll finds what they miss.
    #[default]
    Hybrid,
    /// The worker does not listen.
    PollOnly,
    /// Claims on a notification, after each new connection of the listener, and when a waiting row becomes due. A row that
    /// arrives while the worker is not connected waits until the next of these, so prefer [`Wake::Hybrid`].
    PushOnly,
}

/// The adaptive poll. Its defaults are those of docs/reference/systems/runs.md: 5 s twice, then one and a half times as long each
/// time, at most 30 s. While notifications arrive it only finds what they miss, at 30 s to 60 s. If not every row causes a
/// notification it polls every second. Work resets it.
#[derive(Debug, Clone)]
pub struct Poll {
    /// The first delay.
    pub base: Duration,
    /// The longest delay.
    pub max: Duration,
    /// How much longer each delay is than the one before.
    pub factor: f64,
    /// The longest delay in hybrid mode while rows may arrive without a notification: the listener is not connected, or only some
    /// writers notify.
    pub unnotified: Duration,
    /// `base` while notifications arrive.
    pub pushed_base: Duration,
    /// `max` while notifications arrive.
    pub pushed_max: Duration,
    /// Delays are longer by up to this fraction, so that agents started together do not poll together. Never shorter, because the
    /// number of statements per minute is guaranteed.
    pub jitter: f64,
    /// The seed for reproducible delays. `None` takes one from the system.
    pub seed: Option<u64>,
}

impl Default for Poll {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(5),
            max: Duration::from_secs(30),
            factor: 1.5,
            unnotified: Duration::from_secs(1),
            pushed_base: Duration::from_secs(30),
            pushed_max: Duration::from_secs(60),
            jitter: 0.1,
            seed: None,
        }
    }
}

/// Delays after temporary errors: `base · factor^n`, at most `max`; by default 2, 4, 8, 10 s.
#[derive(Debug, Clone)]
pub struct Backoff {
    /// The first delay is this times `factor`.
    pub base: Duration,
    /// The longest delay.
    pub max: Duration,
    /// How much longer each delay is than the one before.
    pub factor: f64,
    /// Longer by up to this fraction, so that not all agents reconnect at once to a server that restarts.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), max: Duration::from_secs(10), factor: 2.0, jitter: 0.25 }
    }
}

#[derive(Debug)]
pub(super) struct Pace {
    poll: Poll,
    backoff: Backoff,
    wake: Wake,
    dice: StdRng,
    next: Duration,
    empties: u32,
    /// Whether notifications arrived at the last claim: the two sets of delays are not mixed.
    pushed: bool,
    errors: u32,
    /// A notification that finds no row is followed by more claims: it can arrive before the row is visible.
    again: usize,
    /// Claims in a row that saw due rows and got none: other sessions hold their locks, and may still roll back.
    blocked: usize,
}

impl Pace {
    const AGAIN: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(1000)];

    pub(super) fn new(poll: Poll, backoff: Backoff, wake: Wake) -> Self {
        let dice = poll.seed.map_or_else(rand::make_rng, StdRng::seed_from_u64);
        let next = poll.base;
        Self { poll, backoff, wake, dice, next, empties: 0, pushed: false, errors: 0, again: Self::AGAIN.len(), blocked: 0 }
    }

    pub(super) fn found(&mut self) {
        self.empties = 0;
        self.errors = 0;
        self.blocked = 0;
        self.again = Self::AGAIN.len();
    }

    pub(super) fn notified(&mut self) {
        self.again = 0;
    }

    /// The delay after an empty claim. `None`: until there is a notification.
    pub(super) fn empty(&mut self, pushed: bool, next_due_in: Option<Duration>) -> Option<Duration> {
        self.errors = 0;
        let mut wait = if let Some(again) = Self::AGAIN.get(self.again) {
            self.again += 1;
            Some(*again)
        } else if self.wake == Wake::PushOnly {
            None
        } else {
            Some(self.longer(pushed))
        };
        match next_due_in {
            Some(due) if due.is_zero() => {
                let again = Self::AGAIN[self.blocked.min(Self::AGAIN.len() - 1)];
                wait = Some(wait.map_or(again, |wait| wait.min(again)));
                self.blocked += 1;
            }
            Some(due) => {
                let due = due.max(Duration::from_millis(1));
                wait = Some(wait.map_or(due, |wait| wait.min(due)));
                self.blocked = 0;
            }
            None => self.blocked = 0,
        }
        wait
    }

    fn longer(&mut self, pushed: bool) -> Duration {
        // While notifications arrive, the poll only finds what they miss.
        let (base, max) = if pushed { (self.poll.pushed_base, self.poll.pushed_max) } else { (self.poll.base, self.poll.max) };
        if pushed != self.pushed {
            (self.pushed, self.empties) = (pushed, 0);
        }
        self.empties = self.empties.saturating_add(1);
        self.next = if self.empties <= 2 { base } else { self.next.mul_f64(self.poll.factor.max(1.0)).clamp(base, max.max(base)) };
        if !pushed && self.wake == Wake::Hybrid && self.next > self.poll.unnotified {
            // Randomly shorter, never longer: the row must be found within this time.
            return self.poll.unnotified.div_f64(self.jittered(Duration::from_secs(1), self.poll.jitter).as_secs_f64());
        }
        self.jittered(self.next, self.poll.jitter)
    }

    /// The delay after a temporary error.
    pub(super) fn after_error(&mut self) -> Duration {
        self.errors = (self.errors + 1).min(30);
        let grown = self.backoff.base.as_secs_f64() * self.backoff.factor.max(1.0).powi(self.errors.cast_signed());
        let wait = Duration::try_from_secs_f64(grown).unwrap_or(Duration::MAX).min(self.backoff.max);
        self.jittered(wait, self.backoff.jitter)
    }

    /// The delay after an error that is probably permanent: the longest poll interval.
    pub(super) fn after_refusal(&mut self) -> Duration {
        self.jittered(self.poll.max, self.poll.jitter)
    }

    fn jittered(&mut self, wait: Duration, jitter: f64) -> Duration {
        wait.mul_f64(1.0 + jitter.clamp(0.0, 10.0) * self.dice.random::<f64>())
    }
}

#[cfg(test)]
mod tests;
