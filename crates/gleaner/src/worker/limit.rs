//! A concurrency limit that may change while handlers run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// Slots, given out in the order of the requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Limit(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    free: Semaphore,
    size: Mutex<Size>,
}

#[derive(Debug)]
struct Size {
    most: usize,
    /// Slots in use beyond `most`: they are removed when they are returned.
    owed: usize,
}

/// Room for so many handlers. Returned when dropped.
#[derive(Debug)]
pub(super) struct Slots {
    limit: Limit,
    count: usize,
}

impl Limit {
    pub(super) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Shared { free: Semaphore::new(most), size: Mutex::new(Size { most, owed: 0 }) }))
    }

    fn size(&self) -> MutexGuard<'_, Size> {
        self.0.size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn most(&self) -> usize {
        self.size().most
    }

    pub(super) fn set(&self, most: usize) {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        let mut size = self.size();
        if most > size.most {
            let more = most - size.most;
            let paid = more.min(size.owed);
            size.owed -= paid;
            self.0.free.add_permits(more - paid);
        } else {
            let fewer = size.most - most;
            size.owed += fewer - self.0.free.forget_permits(fewer);
        }
        size.most = most;
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.0.free.available_permits() == 0
    }

    /// Waits for one slot.
    pub(super) async fn slot(&self) -> Slots {
        // The semaphore is never closed. If it were, no more slots would be given out.
        match self.0.free.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_) => std::future::pending().await,
        }
        Slots { limit: self.clone(), count: 1 }
    }

    /// All that are free now, up to `most`.
    pub(super) fn free_slots(&self, most: usize) -> Slots {
        let mut slots = self.no_slots();
        while slots.count < most {
            // Others take some at the same time.
            let free = self.0.free.available_permits().min(most - slots.count);
            let Ok(permits) = self.0.free.try_acquire_many(u32::try_from(free.max(1)).unwrap_or(u32::MAX)) else { break };
            slots.count += permits.num_permits();
            permits.forget();
        }
        slots
    }

    pub(super) fn no_slots(&self) -> Slots {
        Slots { limit: self.clone(), count: 0 }
    }

    fn give_back(&self, count: usize) {
        let mut size = self.size();
        let paid = count.min(size.owed);
        size.owed -= paid;
        self.0.free.add_permits(count - paid);
    }
}

impl Slots {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self, mut more: Self) {
        self.count += std::mem::take(&mut more.count);
    }

    /// Takes up to `count` of them out.
    pub(super) fn take(&mut self, count: usize) -> Self {
        let count = count.min(self.count);
        self.count -= count;
        Self { limit: self.limit.clone(), count }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        if self.count > 0 {
            self.limit.give_back(self.count);
        }
    }
}

#[cfg(test)]
mod tests;
