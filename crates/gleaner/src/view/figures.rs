//! How a queue does: how fast, how well, over a stretch of time.

use serde_json::Value;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::View;
use super::filter::Order;
use crate::error::{Error, Result};

/// Figures are made of so many of the newest rows at most.
pub const SAMPLED: i64 = 10_000;

impl View {
    /// The counts by state, and figures of the rows that were created within the last `range` seconds: how many, how they
    /// ended, how long they waited, in total and in slices of `slice` seconds. One statement of bounded cost.
    pub async fn figures(&self, client: &impl GenericClient, range: i64, slice: i64) -> Result<Value> {
        let doing = || Error::doing(format!("make the figures of {}", self.plan.name));
        let counts = format!(
            "(select coalesce(jsonb_agg(jsonb_build_object('state', case s.state when 'backing off' then 'failed' else s.state end, 'count', s.count,
                'capped', s.capped, 'oldest_seconds', extract(epoch from clock_timestamp() - s.oldest))), '[]') from gleaner.stats_{}() as s)",
            self.plan.name
        );
        let Some(created) = self.plan.shape.created.as_ref() else {
            let rows = client.query_typed(&format!("select jsonb_build_object('counts', {counts}, 'slices', '[]'::jsonb)"), &[]).await;
            return Ok(rows.map_err(doing())?[0].get(0));
        };
        let order = self.order(None);
        let (_, order_by) = self.order_by(order);
        let at = format!("q.{}::timestamptz", created.column);
        let since = format!("{at} >= clock_timestamp() - make_interval(secs => $1)");
        // Keys that grow need no index on the time: the newest are read, and the older ones among them left out.
        let newest = format!(
            "select q.* from {} as q {} order by {order_by} limit {SAMPLED}",
            self.plan.table.sql(),
            if order == Order::Created { format!("where {since}") } else { String::new() }
        );
        let sql = format!(
            "with sampled as materialized (
                select {state} as state, date_bin(make_interval(secs => $2), {at}, 'epoch') as slice, {took} as took, {stolen} as stolen
                from ({newest}) as q, clock_timestamp() as v_now where {since}
            ), slices as (
                select s.slice, count(*) as arrived, count(*) filter (where s.state = 'done') as done, count(*) filter (where s.state = 'dead') as dead,
                       percentile_cont(0.95) within group (order by s.took) as p95
                from sampled as s group by s.slice
            )
            select jsonb_build_object('counts', {counts}, 'sampled', count(*), 'capped', count(*) >= {SAMPLED},
                'done', count(*) filter (where s.state = 'done'), 'dead', count(*) filter (where s.state = 'dead'),
                'owned', count(s.stolen), 'stolen', count(*) filter (where s.stolen),
                'timed', count(s.took), 'within_30s', count(*) filter (where s.took <= 30), 'measures', {measures},
                'p50', percentile_cont(0.5) within group (order by s.took), 'p95', percentile_cont(0.95) within group (order by s.took),
                'p99', percentile_cont(0.99) within group (order by s.took),
                'slices', (select coalesce(jsonb_agg(jsonb_build_array(extract(epoch from c.slice)::bigint, c.arrived, c.done, c.dead, c.p95) order by c.slice), '[]') from slices as c))
            from sampled as s",
            state = self.state(),
            took = self.took(),
            stolen = self.stolen(),
            measures = if self.plan.shape.finished.is_some() { "'finished'" } else { "'taken'" },
        );
        let (range, slice) = (range as f64, slice as f64);
        let rows = client.query_typed(&sql, &[(&range, Type::FLOAT8), (&slice, Type::FLOAT8)]).await.map_err(doing())?;
        Ok(rows[0].get(0))
    }

    /// The time a row was first due.
    fn wanted(&self) -> String {
        let shape = &self.plan.shape;
        let in_time = |column: &str| format!("q.{column}::timestamptz");
        let created = shape.created.as_ref().map(|c| in_time(&c.column));
        let due = shape.due.as_ref().map(|d| in_time(&d.column));
        match (created, due) {
            (Some(created), Some(due)) => format!("greatest({created}, {due})"),
            (one, other) => one.or(other).unwrap_or_else(|| "null::timestamptz".to_owned()),
        }
    }

    /// Seconds from when a row was wanted until it was finished; where the end is not stored, until it was taken, of rows that
    /// were taken once: a lease is the time of its claim.
    fn took(&self) -> String {
        let (shape, wanted) = (&self.plan.shape, self.wanted());
        match &shape.finished {
            Some(finished) => {
                format!(
                    "case when {} then extract(epoch from q.{}::timestamptz - {wanted})::float8 end",
                    shape.when.q.done, finished.column
                )
            }
            None => format!(
                "case when q.{lease} > 1000000000000000 and q.{attempts} = 0 and q.{lost} = 0 and ({done} or {held}) then q.{lease} / 1e6::float8 - extract(epoch from {wanted})::float8 end",
                lease = shape.col.lease,
                attempts = shape.col.attempts,
                lost = shape.col.lost,
                done = shape.when.q.done,
                held = shape.when.q.held,
            ),
        }
    }

    /// Whether a done row was done by another than its owner; null for rows without an owner.
    fn stolen(&self) -> String {
        let shape = &self.plan.shape;
        let asked = shape.owner.as_ref().and_then(|owner| Some((owner, owner.table.as_ref()?, owner.key.as_ref()?, owner.user.as_ref()?)));
        asked.map_or_else(
            || "null::boolean".to_owned(),
            |(owner, table, key, user)| {
                format!(
                    "case when {} and q.{} is not null and q.{session} like '%/%' then (
                        select split_part(q.{session}, '/', 1) <> o.{user}::text from {table} as o where o.{} = q.{}) end",
                    shape.when.q.done,
                    owner.column,
                    key,
                    owner.column,
                    session = shape.col.session,
                )
            },
        )
    }
}
