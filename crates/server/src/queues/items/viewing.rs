//! A transaction in which a caller reads a queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deadpool_postgres::Transaction;
use futures_util::future::BoxFuture;
use gleaner::registry::Entry;
use gleaner::view::View;
use gleaner::{Error, Result};
use gleaner_http::Caller;
use tokio_postgres::types::Type;

use crate::queues::Queues;
use crate::queues::transaction::begin;

/// How long a declaration is used without being read again. `gleaner attach` may have changed it.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// The queues that were read.
#[derive(Debug, Default)]
pub(in crate::queues) struct Views {
    known: Mutex<HashMap<String, (Instant, Arc<View>)>>,
}

/// What the caller may operate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::queues) enum Scope {
    /// Every row, and so it sees every row.
    All,
    /// Its own rows and those without an owner.
    Own,
    /// None.
    Nothing,
}

impl Queues {
    /// The queue, for people to see.
    pub(in crate::queues) async fn view(&self, queue: &str) -> Result<Arc<View>> {
        let known = self.shared.views.known.lock().expect("no panic holds it").get(queue).cloned();
        if let Some((read, view)) = known
            && read.elapsed() < KNOWN_FOR
        {
            return Ok(view);
        }
        let client = self.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let view = Arc::new(View::of(&**client, queue).await?);
        self.shared.views.known.lock().expect("no panic holds it").insert(queue.to_owned(), (Instant::now(), view.clone()));
        Ok(view)
    }

    /// The queue as the registry lists it: planned again only when its declaration has changed, because the figures are made often.
    pub(in crate::queues) async fn view_of(&self, entry: &Entry) -> Result<Arc<View>> {
        let known = self.shared.views.known.lock().expect("no panic holds it").get(&entry.name).cloned();
        match known.filter(|(_, view)| view.plan().declaration == entry.declaration) {
            Some((_, view)) => Ok(view),
            None => self.view(&entry.name).await,
        }
    }

    /// Runs `read` as the caller, or with the server's own rights if the caller operates all rows of the queue. The database
    /// decides which.
    pub(in crate::queues) async fn viewing<T: Send + 'static>(
        &self,
        caller: &Caller,
        queue: &str,
        read: impl for<'t> FnOnce(Arc<View>, &'t Transaction<'_>, Scope) -> BoxFuture<'t, Result<T>>,
    ) -> Result<T> {
        let view = self.view(queue).await?;
        let mut client = self.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let transaction = begin(&mut client, caller).await?;
        let scope = scope(&transaction, caller, queue).await?;
        let value = read(view, &transaction, scope).await?;
        transaction.commit().await.map_err(Error::doing("commit"))?;
        Ok(value)
    }
}

async fn scope(transaction: &Transaction<'_>, caller: &Caller, queue: &str) -> Result<Scope> {
    if matches!(caller, Caller::Ourselves) {
        return Ok(Scope::All);
    }
    let sql = "select gleaner.me() #>> array['queues', $1]";
    let rows = transaction.query_typed(sql, &[(&queue, Type::TEXT)]).await.map_err(Error::doing("ask what the caller may see"))?;
    Ok(match rows[0].get::<_, Option<&str>>(0) {
        Some("all") => {
            let back = "select set_config('role', 'none', true)";
            transaction.query_typed(back, &[]).await.map_err(Error::doing("read with the server's rights"))?;
            Scope::All
        }
        Some("own") => Scope::Own,
        _ => Scope::Nothing,
    })
}
