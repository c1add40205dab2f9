//! Detects that the machine, or only this process, slept: rows held before may be held by another agent now.
//!
//! There are two signs. The wall clock advanced further than the monotonic one, which stands still while a machine is suspended.
//! Or a tick came far too late, as after SIGSTOP or in a paused virtual machine. A false alarm costs one statement.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::Instant;

const TICK: Duration = Duration::from_secs(2);
/// A busy machine is sometimes this late; leases last longer.
const LATE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct WallClock(pub(super) Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl std::fmt::Debug for WallClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WallClock")
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self(Arc::new(SystemTime::now))
    }
}

#[derive(Debug)]
pub(super) struct Sleep {
    wall: WallClock,
    seen: Mutex<(Instant, SystemTime)>,
    times: watch::Sender<u64>,
}

impl Sleep {
    pub(super) fn new(wall: WallClock) -> Self {
        let now = (Instant::now(), wall.0());
        Self { wall, seen: Mutex::new(now), times: watch::Sender::new(0) }
    }

    /// How many sleeps were detected so far. Call it before anything that must not be done with stale leases.
    pub(super) fn times(&self) -> u64 {
        let now = (Instant::now(), self.wall.0());
        let before = std::mem::replace(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner), now);
        let ran = now.0.duration_since(before.0);
        // A wall clock that was set back proves nothing.
        let passed = now.1.duration_since(before.1).unwrap_or_default();
        if ran > TICK + LATE || passed > ran + LATE {
            tracing::info!(asleep_s = ran.max(passed).as_secs(), "the machine slept; checking the leases");
            self.times.send_modify(|times| *times += 1);
        }
        *self.times.borrow()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.times.subscribe()
    }

    pub(super) async fn tick(&self) {
        loop {
            tokio::time::sleep(TICK).await;
            self.times();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> (Arc<Mutex<SystemTime>>, WallClock) {
        let time = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)));
        let read = time.clone();
        (time, WallClock(Arc::new(move || *read.lock().unwrap_or_else(PoisonError::into_inner))))
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_machine_is_noticed_by_its_wall_clock() {
        let (time, wall) = clock();
        let sleep = Sleep::new(wall);
        assert_eq!(sleep.times(), 0);
        *time.lock().unwrap() += Duration::from_secs(600);
        assert_eq!((sleep.times(), sleep.times()), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_process_is_noticed_by_a_late_tick() {
        let sleep = Sleep::new(clock().1);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(sleep.times(), 0);
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(sleep.times(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_is_set_back_is_no_sleep() {
        let (time, wall) = clock();
        let sleep = Sleep::new(wall);
        *time.lock().unwrap() -= Duration::from_secs(600);
        assert_eq!(sleep.times(), 0);
    }
}
