//! A database, accessed directly with the rights of its URL.

use async_trait::async_trait;
use gleaner::queue::{Acts, OnDuplicate};
use gleaner::transport::{Direct, Endpoint};
use gleaner::view::{Filter, State, View};
use gleaner::{Error, Result};
use serde_json::Value;
use tokio_postgres::types::{ToSql, Type};

use crate::mcp::backend::{Backend, Followup, Link, Row};

/// A [`Backend`] backed by a database.
#[derive(Debug, Clone)]
pub struct DirectBackend {
    direct: Direct,
}

impl DirectBackend {
    pub fn new(direct: Direct) -> Self {
        Self { direct }
    }

    async fn client(&self) -> Result<deadpool_postgres::Object> {
        gleaner::connect::checkout(self.direct.pool()).await
    }
}

#[async_trait]
impl Backend for DirectBackend {
    fn endpoint(&self) -> &dyn Endpoint {
        &self.direct
    }

    async fn due(&self, queue: &str, kind: Option<&str>, limit: i64) -> Result<Vec<Row>> {
        let client = self.client().await?;
        let view = View::of(&**client, queue).await?;
        let mut due = Vec::new();
        // Rows that are ready, rows waiting for a retry and rows whose lease expired: all of them can be claimed.
        for state in [State::Ready, State::Failed, State::Running] {
            let filter = Filter { state: Some(state), kind: kind.map(str::to_owned), limit, ..Filter::default() };
            for row in view.list(&**client, &filter).await? {
                let row = read(row)?;
                if row.due_in.is_some_and(|wait| wait <= 0.0) {
                    due.push(row);
                }
            }
        }
        due.sort_by(|a, b| a.due_in.unwrap_or_default().total_cmp(&b.due_in.unwrap_or_default()));
        due.truncate(usize::try_from(limit).unwrap_or_default());
        Ok(due)
    }

    async fn show(&self, queue: &str, key: &str) -> Result<Option<Row>> {
        let client = self.client().await?;
        match View::of(&**client, queue).await?.show(&**client, key).await {
            Ok(row) => row.map(read).transpose(),
            // The value cannot be a key, such as text where keys are numbers.
            Err(error) if error.code().is_some_and(|code| code.code().starts_with("22")) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn enqueue(&self, queue: &str, kind: Option<&str>, payload: &Value) -> Result<String> {
        let client = self.client().await?;
        let acts = Acts::of(&**client, queue).await?;
        let item = super::item(queue, acts.declaration(), kind, payload)?;
        let enqueued = acts.enqueue(&**client, &[item], OnDuplicate::Skip).await?;
        let key = enqueued.into_iter().next().map(|one| one.key);
        // Sent after the commit. A lost notification costs time, but never loses work.
        let sent = client.query_typed("select pg_notify($1, $2)", &[(&gleaner::notify::CHANNEL, Type::TEXT), (&queue, Type::TEXT)]).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "the notification failed; the next poll finds the work");
        }
        key.ok_or_else(|| Error::Other("enqueue gave no answer".into()))
    }

    async fn link_contact(&self, link: &Link<'_>) -> Result<Vec<(String, String)>> {
        let sql = "select l.id::text, l.outcome from gleaner.link_activity(
                       p_activity => $1::text::uuid, p_contact => $2, p_backfill => $3, p_remember => $4) as l";
        let params: [(&(dyn ToSql + Sync), Type); 4] =
            [(&link.activity, Type::TEXT), (&link.contact, Type::INT8), (&link.backfill, Type::BOOL), (&link.remember, Type::BOOL)];
        let rows = self.client().await?.query_typed(sql, &params).await.map_err(Error::doing("link the activity"))?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    async fn schedule_followup(&self, followup: &Followup<'_>) -> Result<Value> {
        let sql = "select to_jsonb(a) from public.schedule_followup(
                       p_prospect_id => $1, p_action_type => $2, p_scheduled_for => $3::text::timestamptz, p_payload => $4) as a";
        let params: [(&(dyn ToSql + Sync), Type); 4] =
            [(&followup.prospect, Type::TEXT), (&followup.action, Type::TEXT), (&followup.at, Type::TEXT), (followup.payload, Type::JSONB)];
        let rows = self.client().await?.query_typed(sql, &params).await.map_err(Error::doing("schedule the follow-up"))?;
        rows.first().map(|row| row.get(0)).ok_or_else(|| Error::Other("the follow-up was not returned".into()))
    }

    async fn reschedule_followup(&self, key: &str, at: &str) -> Result<Vec<(String, Option<String>)>> {
        let sql = "select r.outcome, r.status from gleaner.reschedule_followups(array[$1::text::uuid], $2::text::timestamptz) as r";
        let rows = self.client().await?.query_typed(sql, &[(&key, Type::TEXT), (&at, Type::TEXT)]).await;
        Ok(rows.map_err(Error::doing("reschedule the follow-up"))?.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    async fn cancel_followup(&self, key: &str, reason: &str) -> Result<Vec<(String, Option<String>)>> {
        let sql = "select r.outcome, r.status from public.cancel_scheduled_actions(array[$1::text::uuid], $2) as r";
        let rows = self.client().await?.query_typed(sql, &[(&key, Type::TEXT), (&reason, Type::TEXT)]).await;
        Ok(rows.map_err(Error::doing("cancel the follow-up"))?.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    async fn followups(&self, prospect: Option<&str>, limit: i64) -> Result<Vec<Value>> {
        let sql = "select to_jsonb(a) from public.scheduled_actions as a
                   where a.status in ('pending', 'processing') and ($1::text is null or a.prospect_id = $1) order by a.scheduled_for, a.id limit $2";
        let rows = self.client().await?.query_typed(sql, &[(&prospect, Type::TEXT), (&limit, Type::INT8)]).await;
        Ok(rows.map_err(Error::doing("list follow-ups"))?.iter().map(|row| row.get(0)).collect())
    }
}

fn read(row: Value) -> Result<Row> {
    serde_json::from_value(row).map_err(|error| Error::Other(format!("a row could not be read: {error}")))
}
