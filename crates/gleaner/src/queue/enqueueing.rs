//! Enqueues items, with one statement or with COPY.

use futures_util::{SinkExt, pin_mut};
use serde_json::Value;
use tokio_postgres::types::{Json, Type};
use tokio_postgres::{CopyInSink, GenericClient, Row, Transaction};

use super::acts::Acts;
use super::answer::Enqueued;
use super::copy::{copy_key, copy_line};
use super::ranges::Reserved;
use super::request::OnDuplicate;
use crate::error::{Error, Result};
use crate::introspect::quote;

impl Acts {
    /// Enqueues items; their keys are columns of the table. Runs in the caller's transaction when `client` is one.
    pub async fn enqueue(&self, client: &impl GenericClient, items: &[Value], on_duplicate: OnDuplicate) -> Result<Vec<Enqueued>> {
        let duplicate = match on_duplicate {
            OnDuplicate::Skip => "skip",
            OnDuplicate::Replace => "replace",
        };
        let sql = format!(
            "select {}, outcome from gleaner.enqueue_{}({}p_items => $1, p_on_duplicate => $2)",
            self.key_type.output("id"),
            self.name,
            self.tenant(3)
        );
        let rows = self.query(client, "enqueue", &sql, &[(&Json(items), Type::JSONB), (&duplicate, Type::TEXT)]).await?;
        Ok(self.enqueued(&rows))
    }

    /// Enqueues the items of several callers. Fails if a trigger on the table accepted only some of them: it would be unknown
    /// whose they are.
    pub(super) async fn enqueue_combined(&self, client: &impl GenericClient, items: &[Value]) -> Result<Vec<Enqueued>> {
        let sql = format!(
            "select {}, outcome, 1 / (count(*) over () = $2)::integer from gleaner.enqueue_{}({}p_items => $1)",
            self.key_type.output("id"),
            self.name,
            self.tenant(3)
        );
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let rows = self.query(client, "enqueue", &sql, &[(&Json(items), Type::JSONB), (&count, Type::INT8)]).await?;
        Ok(self.enqueued(&rows))
    }

    fn enqueued(&self, rows: &[Row]) -> Vec<Enqueued> {
        rows.iter().map(|r| Enqueued { key: self.key_type.read(r, 0), outcome: r.get(1) }).collect()
    }

    /// Whether this item may have to wait for another transaction that enqueues the same unique key.
    pub(super) fn may_wait(&self, item: &Value) -> bool {
        self.declaration.unique.as_ref().and_then(|unique| item.get(unique)).is_some_and(|key| !key.is_null())
    }

    /// Enqueues thousands of items at once with COPY, in the caller's transaction. All items have the keys of the first; unique
    /// keys must not collide. Similar rows wait in bulk ranges, if the queue has them: one index entry for a thousand rows.
    pub async fn enqueue_copy(&self, client: &Transaction<'_>, items: &[Value]) -> Result<u64> {
        let Some(first) = items.first().and_then(Value::as_object) else { return Ok(0) };
        let names: Vec<&String> = first.keys().collect();
        let reserved = self.reserve_keys(client, items, &names).await?;
        let mut columns: Vec<String> = names.iter().map(|n| quote(n)).collect();
        if reserved.is_some() {
            columns.splice(0..0, [self.key.clone(), self.columns.lease.clone()]);
        }
        let sink: CopyInSink<bytes::Bytes> = client
            .copy_in(&format!("copy {} ({}) from stdin", self.table, columns.join(", ")))
            .await
            .map_err(|e| Error::doing(format!("enqueue by copy in {}", self.name))(e))?;
        pin_mut!(sink);
        let failed = |e| Error::doing(format!("enqueue by copy in {}", self.name))(e);
        let mut buffer = Vec::with_capacity(1 << 16);
        let mut keys = reserved.iter().flat_map(Reserved::keys);
        for item in items {
            if let Some((key, in_range)) = keys.next() {
                copy_key(&mut buffer, key, in_range);
            }
            copy_line(&mut buffer, &names, item);
            if buffer.len() > (1 << 16) - 4096 {
                sink.send(std::mem::replace(&mut buffer, Vec::with_capacity(1 << 16)).into()).await.map_err(failed)?;
            }
        }
        sink.send(buffer.into()).await.map_err(failed)?;
        let count = sink.finish().await.map_err(failed)?;
        if let Some(reserved) = &reserved {
            self.register_ranges(client, reserved).await?;
        }
        Ok(count)
    }
}
