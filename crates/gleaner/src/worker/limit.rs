//! A concurrency limit that may change while handlers run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Slots, given out in the order of the requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Limit {
    slots: Arc<Semaphore>,
    size: Arc<Mutex<Size>>,
}

#[derive(Debug)]
struct Size {
    most: usize,
    /// Slots in use beyond `most`: they are removed when they are returned.
    owed: usize,
}

/// Returned when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    permit: Option<OwnedSemaphorePermit>,
    size: Arc<Mutex<Size>>,
}

impl Limit {
    pub(super) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self { slots: Arc::new(Semaphore::new(most)), size: Arc::new(Mutex::new(Size { most, owed: 0 })) }
    }

    pub(super) fn most(&self) -> usize {
        lock(&self.size).most
    }

    pub(super) fn set(&self, most: usize) {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        let mut size = lock(&self.size);
        if most > size.most {
            let more = most - size.most;
            let paid = more.min(size.owed);
            size.owed -= paid;
            self.slots.add_permits(more - paid);
        } else {
            let fewer = size.most - most;
            size.owed += fewer - self.slots.forget_permits(fewer);
        }
        size.most = most;
    }

    pub(super) async fn slot(&self) -> Slot {
        // The semaphore is never closed. If it were, no more slots would be given out.
        match self.slots.clone().acquire_owned().await {
            Ok(permit) => Slot { permit: Some(permit), size: self.size.clone() },
            Err(_) => std::future::pending().await,
        }
    }

    pub(super) fn try_slot(&self) -> Option<Slot> {
        let permit = self.slots.clone().try_acquire_owned().ok()?;
        Some(Slot { permit: Some(permit), size: self.size.clone() })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let mut size = lock(&self.size);
        if size.owed > 0 {
            size.owed -= 1;
            permit.forget();
        }
    }
}

fn lock(size: &Mutex<Size>) -> MutexGuard<'_, Size> {
    size.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_limit_holds_as_soon_as_enough_have_ended() {
        let limit = Limit::new(4);
        let mut taken: Vec<Slot> = (0..4).filter_map(|_| limit.try_slot()).collect();
        limit.set(2);
        assert!(limit.try_slot().is_none());
        taken.truncate(2);
        assert!(limit.try_slot().is_none(), "two run, and two may");
        taken.truncate(1);
        taken.extend(limit.try_slot());
        assert!(taken.len() == 2 && limit.try_slot().is_none());
    }

    #[test]
    fn a_raised_limit_holds_at_once_and_pays_what_is_owed_first() {
        let limit = Limit::new(3);
        let taken: Vec<Slot> = (0..3).filter_map(|_| limit.try_slot()).collect();
        limit.set(1);
        limit.set(4);
        let more: Vec<Slot> = std::iter::from_fn(|| limit.try_slot()).collect();
        assert_eq!((taken.len(), more.len()), (3, 1));
        drop((taken, more));
        assert_eq!(std::iter::from_fn(|| limit.try_slot()).collect::<Vec<_>>().len(), 4);
    }
}
