//! Jobs: payloads whose type determines their kind. A thin layer over [`Queue::enqueue`] and [`Acts::enqueue`].

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_postgres::GenericClient;

use super::Queue;
use super::acts::Acts;
use super::answer::Enqueued;
use super::request::OnDuplicate;
use crate::error::{Error, Result};

/// A payload whose type determines its kind.
///
/// [`Queue::enqueue_job`] writes it. A handler registered with [`handle_job`](crate::worker::Builder::handle_job) receives it as
/// [`Job::payload`](crate::worker::Job::payload).
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Letter {
///     to: String,
/// }
///
/// impl gleaner::Payload for Letter {
///     const KIND: &'static str = "letter";
/// }
/// ```
///
/// It is stored as JSON in the payload column of the queue, next to its kind. In a queue that declares no payload column the
/// payload is the whole row: the fields of the struct are columns of the table.
pub trait Payload: Serialize + DeserializeOwned + Send + 'static {
    /// The kind, as stored in the kind column of the queue.
    const KIND: &'static str;
}

impl Acts {
    /// The item that [`Self::enqueue`] takes for this payload: an object whose keys are columns of the table. Add columns such as a
    /// due time, a priority or a unique key before it is enqueued; see [`Queue::item_of`].
    pub fn item_of<P: Payload>(&self, payload: &P) -> Result<Value> {
        let unsupported = |what: &str| Error::Unsupported { queue: self.name.clone(), what: what.into() };
        let Some(kind) = &self.declaration.kind else {
            return Err(unsupported("has no kinds, which jobs need: declare `kind`, or enqueue the columns of a row"));
        };
        let payload = serde_json::to_value(payload).map_err(|source| Error::Payload { kind: P::KIND, source })?;
        let mut item = match (&self.declaration.payload, payload) {
            (Some(column), payload) => Map::from_iter([(column.clone(), payload)]),
            (None, Value::Object(columns)) => columns,
            (None, _) => {
                return Err(unsupported("has no payload column: the payload must be a struct whose fields are columns of the table"));
            }
        };
        item.insert(kind.clone(), P::KIND.into());
        Ok(Value::Object(item))
    }

    /// Enqueues one job, in the caller's transaction when `client` is one. If a waiting row has the same unique key, that row is kept.
    pub async fn enqueue_job<P: Payload>(&self, client: &impl GenericClient, payload: &P) -> Result<Enqueued> {
        first(self.enqueue(client, &[self.item_of(payload)?], OnDuplicate::Skip).await?)
    }
}

impl Queue {
    /// Enqueues one job with the kind of its type, and notifies a waiting worker.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Letter { to: String }
    /// # impl gleaner::Payload for Letter { const KIND: &'static str = "letter"; }
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// let enqueued = queue.enqueue_job(&Letter { to: "Ada".into() }).await?;
    /// println!("{}", enqueued.key);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue_job<P: Payload>(&self, payload: &P) -> Result<Enqueued> {
        first(self.enqueue(&[self.item_of(payload)?]).await?)
    }

    /// Enqueues many jobs of one type with one statement.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Letter { to: String }
    /// # impl gleaner::Payload for Letter { const KIND: &'static str = "letter"; }
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// let letters = ["Ada", "Grace"].map(|to| Letter { to: to.into() });
    /// queue.enqueue_jobs(&letters).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue_jobs<P: Payload>(&self, payloads: &[P]) -> Result<Vec<Enqueued>> {
        let items: Vec<Value> = payloads.iter().map(|payload| self.item_of(payload)).collect::<Result<_>>()?;
        self.enqueue(&items).await
    }

    /// The item that [`Self::enqueue`] takes for this payload, to add columns to: when it is due, its priority, its unique key, its
    /// owner.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Letter { to: String }
    /// # impl gleaner::Payload for Letter { const KIND: &'static str = "letter"; }
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// let mut letter = queue.item_of(&Letter { to: "Ada".into() })?;
    /// letter["unique_key"] = "ada".into();
    /// letter["due_at"] = "2030-01-01T08:00:00Z".into();
    /// queue.enqueue(&[letter]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn item_of<P: Payload>(&self, payload: &P) -> Result<Value> {
        self.acts().item_of(payload)
    }
}

fn first(enqueued: Vec<Enqueued>) -> Result<Enqueued> {
    enqueued.into_iter().next().ok_or_else(|| Error::Other("enqueue gave no answer".into()))
}
