//! Quota units, spent no faster than Google allows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as Plain, PoisonError};
use std::time::Duration;

use gleaner_ingest::Channel;
use gleaner_ingest::providers::gmail::number;
use tokio::sync::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

/// Units per minute when the channel has no setting: 250 messages, with a margin below Google's 6000.
const PER_MINUTE: f64 = 5000.0;

/// The budgets of all mailboxes. A budget outlives the poll that spends it.
#[derive(Debug, Default)]
pub(super) struct Budgets(Plain<HashMap<Uuid, Arc<Budget>>>);

impl Budgets {
    pub(super) fn of(&self, channel: &Channel) -> Arc<Budget> {
        let per_minute = number(channel, "quota_per_minute").unwrap_or(PER_MINUTE);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let budget = all.entry(channel.id).or_insert_with(|| Arc::new(Budget::new(per_minute)));
        if (budget.per_second - Budget::rate(per_minute)).abs() > f64::EPSILON {
            *budget = Arc::new(Budget::new(per_minute));
        }
        budget.clone()
    }
}

/// What one mailbox may spend. Google counts per minute; a sixth of a minute's units may be spent at once.
#[derive(Debug)]
pub(super) struct Budget {
    per_second: f64,
    /// When everything spent so far is available again.
    paid_off: Mutex<Instant>,
}

impl Budget {
    pub(super) fn new(per_minute: f64) -> Self {
        Self { per_second: Self::rate(per_minute), paid_off: Mutex::new(Instant::now()) }
    }

    fn rate(per_minute: f64) -> f64 {
        (per_minute / 60.0).max(0.1)
    }

    /// Waits until `units` may be spent, and spends them.
    pub(super) async fn spend(&self, units: u32) {
        let wait = {
            let mut paid_off = self.paid_off.lock().await;
            let now = Instant::now();
            let debt = paid_off.saturating_duration_since(now);
            *paid_off = (*paid_off).max(now) + Duration::from_secs_f64(f64::from(units) / self.per_second);
            debt.saturating_sub(Duration::from_secs(10))
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_a_minute_is_not_exceeded() {
        let budget = Budget::new(6000.0);
        let begun = Instant::now();
        for _ in 0..50 {
            budget.spend(20).await;
        }
        assert!(begun.elapsed() < Duration::from_secs(1), "a burst waits: {:?}", begun.elapsed());
        for _ in 0..300 {
            budget.spend(20).await;
        }
        // 7000 units in all. A sixth of a minute's units is available at once, the rest at a hundred a second.
        let took = begun.elapsed();
        assert!(took > Duration::from_secs(59) && took < Duration::from_secs(61), "{took:?}");
    }
}
