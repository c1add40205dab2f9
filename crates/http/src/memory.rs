//! A memory budget that requests share. What does not fit is refused, not queued: a queue of bodies is memory, too.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is allotted in pieces of this size.
const PIECE: usize = 64 * 1024;

/// The budget.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Semaphore>);

/// What one request has of it. It is given back when this is dropped.
#[derive(Debug, Default)]
pub struct Share {
    permit: Option<OwnedSemaphorePermit>,
    pieces: usize,
}

impl Memory {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.div_ceil(PIECE))))
    }

    /// Makes the share large enough for so many bytes. False when the budget is used up.
    #[must_use]
    pub fn extend(&self, share: &mut Share, bytes: usize) -> bool {
        let needed = bytes.div_ceil(PIECE).saturating_sub(share.pieces);
        if needed == 0 {
            return true;
        }
        let more = u32::try_from(needed).ok().and_then(|needed| Arc::clone(&self.0).try_acquire_many_owned(needed).ok());
        let Some(more) = more else { return false };
        share.pieces += needed;
        match &mut share.permit {
            Some(permit) => permit.merge(more),
            None => share.permit = Some(more),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_and_given_back() {
        let memory = Memory::new(3 * PIECE);
        let (mut one, mut other) = (Share::default(), Share::default());
        assert!(memory.extend(&mut one, 1) && memory.extend(&mut one, PIECE) && memory.extend(&mut one, PIECE + 1));
        assert!(memory.extend(&mut other, PIECE));
        assert!(!memory.extend(&mut other, PIECE + 1), "all three pieces are taken");
        drop(one);
        assert!(memory.extend(&mut other, 3 * PIECE));
    }
}
