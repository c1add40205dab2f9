//! Hears what a queue in memory pushes.

use async_trait::async_trait;
use tokio::sync::watch;

use crate::transport::Push;

/// Rings so far, and whether they can be heard.
#[derive(Debug)]
pub(super) struct Ear {
    heard: watch::Receiver<(u64, bool)>,
    marked: u64,
}

impl Ear {
    pub(super) fn new(heard: watch::Receiver<(u64, bool)>) -> Self {
        Self { heard, marked: 0 }
    }
}

#[async_trait]
impl Push for Ear {
    fn is_connected(&self) -> bool {
        self.heard.borrow().1
    }

    fn mark(&mut self) {
        self.marked = self.heard.borrow().0;
    }

    async fn rung(&mut self) {
        let marked = self.marked;
        let heard = self.heard.wait_for(|(rings, _)| *rings > marked).await.map(|heard| heard.0);
        match heard {
            Ok(rings) => self.marked = rings,
            Err(_) => std::future::pending().await,
        }
    }
}
