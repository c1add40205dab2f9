//! Code that runs around every handler: measure, log, hold a lock, reject a result.

use std::sync::Arc;

use async_trait::async_trait;

use super::context::Context;
use super::handler::{Handler, Replied};
use crate::queue::Item;

/// Wraps every handler of a worker. An async function `(Item, Context, Next) -> Replied` is one.
#[async_trait]
pub trait Middleware: Send + Sync + 'static {
    /// Calls `next.run(item, context)`, or replies itself.
    async fn around(&self, item: Item, context: Context, next: Next) -> Replied;
}

#[async_trait]
impl<M, F> Middleware for M
where
    M: Fn(Item, Context, Next) -> F + Send + Sync + 'static,
    F: Future<Output = Replied> + Send + 'static,
{
    async fn around(&self, item: Item, context: Context, next: Next) -> Replied {
        self(item, context, next).await
    }
}

/// The rest of the middleware chain, and the handler.
pub struct Next {
    layers: Arc<Vec<Arc<dyn Middleware>>>,
    passed: usize,
    handler: Handler,
}

impl Next {
    pub(super) fn new(layers: Arc<Vec<Arc<dyn Middleware>>>, handler: Handler) -> Self {
        Self { layers, passed: 0, handler }
    }

    /// Runs the rest: the other middleware, then the handler.
    pub async fn run(mut self, item: Item, context: Context) -> Replied {
        match self.layers.get(self.passed).cloned() {
            Some(layer) => {
                self.passed += 1;
                layer.around(item, context, self).await
            }
            None => (self.handler)(item, context).await,
        }
    }
}

impl std::fmt::Debug for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next").field("layers_left", &(self.layers.len() - self.passed)).finish_non_exhaustive()
    }
}
