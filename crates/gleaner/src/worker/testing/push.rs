//! The notifications of a queue in memory.

use async_trait::async_trait;
use tokio::sync::watch;

use crate::transport::Push;

/// Notifications so far, and whether they arrive.
#[derive(Debug)]
pub(super) struct MemoryPush {
    counts: watch::Receiver<(u64, bool)>,
    marked: u64,
}

impl MemoryPush {
    pub(super) fn new(counts: watch::Receiver<(u64, bool)>) -> Self {
        Self { counts, marked: 0 }
    }
}

#[async_trait]
impl Push for MemoryPush {
    fn is_connected(&self) -> bool {
        self.counts.borrow().1
    }

    fn mark(&mut self) {
        self.marked = self.counts.borrow().0;
    }

    async fn notified(&mut self) {
        let marked = self.marked;
        let counts = self.counts.wait_for(|(count, _)| *count > marked).await.map(|counts| counts.0);
        match counts {
            Ok(count) => self.marked = count,
            Err(_) => std::future::pending().await,
        }
    }
}
