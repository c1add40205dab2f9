//! The records of bulk acts, in `gleaner.operation`. Any server shows and stops what another one works on.

use gleaner::{Error, Result};
use tokio_postgres::types::{Json, Type};
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

use super::request::{Bulk, BulkRequest};

const SHOWN: &str =
    "jsonb_build_object('id', o.id, 'act', o.act, 'filter', o.filter, 'caller', o.caller, 'state', o.state, 'total', o.total,
    'done', o.done, 'already', o.already, 'failed', o.failed, 'error', o.error, 'started_at', o.started_at, 'changed_at', o.changed_at)";

fn shown(rows: &[Row]) -> Vec<Bulk> {
    rows.iter().map(|row| row.get::<_, Json<Bulk>>(0).0).collect()
}

/// Enters a new one. `None` while another one runs in this queue.
pub(super) async fn enter(
    client: &impl GenericClient,
    queue: &str,
    request: &BulkRequest,
    caller: &str,
    total: usize,
) -> Result<Option<Bulk>> {
    settle(client, queue).await?;
    let total = i32::try_from(total).unwrap_or(i32::MAX);
    let filter = Json(serde_json::to_value(&request.filter).expect("texts"));
    let sql = format!(
        "insert into gleaner.operation as o (queue, act, filter, caller, total) values ($1, $2, $3, $4, $5)
         on conflict (queue) where state = 'running' do nothing returning {SHOWN}"
    );
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 5] =
        [(&queue, Type::TEXT), (&request.act.name(), Type::TEXT), (&filter, Type::JSONB), (&caller, Type::TEXT), (&total, Type::INT4)];
    let rows = client.query_typed(&sql, &values).await.map_err(Error::doing("enter the bulk act"))?;
    Ok(shown(&rows).pop())
}

/// What a server that died left behind runs no longer. Old ones are forgotten.
async fn settle(client: &impl GenericClient, queue: &str) -> Result<()> {
    let sql = "with old as (delete from gleaner.operation where queue = $1 and state <> 'running' and started_at < clock_timestamp() - interval '30 days')
               update gleaner.operation set state = 'interrupted'
               where queue = $1 and state = 'running' and changed_at < clock_timestamp() - interval '1 minute'";
    client.query_typed(sql, &[(&queue, Type::TEXT)]).await.map_err(Error::doing("settle the bulk acts"))?;
    Ok(())
}

/// The latest ones, the newest first; of one caller unless it sees all.
pub(super) async fn latest(client: &impl GenericClient, queue: &str, caller: Option<&str>) -> Result<Vec<Bulk>> {
    settle(client, queue).await?;
    let sql = format!(
        "select {SHOWN} from gleaner.operation as o where o.queue = $1 and ($2::text is null or o.caller = $2) order by o.started_at desc limit 10"
    );
    let rows = client.query_typed(&sql, &[(&queue, Type::TEXT), (&caller, Type::TEXT)]).await;
    Ok(shown(&rows.map_err(Error::doing("list the bulk acts"))?))
}

pub(super) async fn find(client: &impl GenericClient, queue: &str, id: Uuid, caller: Option<&str>) -> Result<Option<Bulk>> {
    settle(client, queue).await?;
    let sql =
        format!("select {SHOWN} from gleaner.operation as o where o.queue = $1 and o.id = $2 and ($3::text is null or o.caller = $3)");
    let rows = client.query_typed(&sql, &[(&queue, Type::TEXT), (&id, Type::UUID), (&caller, Type::TEXT)]).await;
    Ok(shown(&rows.map_err(Error::doing("look at the bulk act"))?).pop())
}

/// Asks the server that works on it to stop after its batch.
pub(super) async fn stop(client: &impl GenericClient, id: Uuid) -> Result<()> {
    let sql = "update gleaner.operation set stopped = true where id = $1 and state = 'running'";
    client.query_typed(sql, &[(&id, Type::UUID)]).await.map_err(Error::doing("stop the bulk act"))?;
    Ok(())
}

/// What one batch did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Batch {
    pub(super) done: i32,
    pub(super) already: i32,
    pub(super) failed: i32,
}

/// Records a batch. False when it should go no further.
pub(super) async fn record(client: &impl GenericClient, id: Uuid, batch: Batch) -> Result<bool> {
    let sql = "update gleaner.operation set done = done + $2, already = already + $3, failed = failed + $4, changed_at = clock_timestamp()
               where id = $1 and state = 'running' returning not stopped";
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] =
        [(&id, Type::UUID), (&batch.done, Type::INT4), (&batch.already, Type::INT4), (&batch.failed, Type::INT4)];
    let rows = client.query_typed(sql, &values).await.map_err(Error::doing("record the batch"))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

pub(super) async fn end(client: &impl GenericClient, id: Uuid, error: Option<&str>) -> Result<()> {
    let sql = "update gleaner.operation
               set state = case when $2::text is not null then 'failed' when stopped then 'stopped' else 'done' end, error = $2, changed_at = clock_timestamp()
               where id = $1 and state = 'running'";
    client.query_typed(sql, &[(&id, Type::UUID), (&error, Type::TEXT)]).await.map_err(Error::doing("end the bulk act"))?;
    Ok(())
}
