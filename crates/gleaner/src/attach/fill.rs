//! Gives the rows that were there before the queue their times.

use tokio_postgres::Client;

use crate::error::{Error, Result};
use crate::introspect::{literal, quote};
use crate::plan::Plan;
use crate::plan::shape::in_format;
use crate::render;

/// How many rows one statement reads.
const SLICE: u64 = 5000;

/// Fills a slice at a time: rows that wait, and rows that are being worked on, which get one hold to finish. History stays as it is.
/// A row that rejects the change is recorded in `gleaner.rejected_row` and keeps no time: attach again when it is put right.
/// Returns how many rows were filled.
pub(super) async fn fill(client: &mut Client, plan: &Plan, say: &(dyn Fn(&str) + Sync)) -> Result<u64> {
    let (key, table) = (&plan.shape.key.column, plan.table.sql());
    let (mut after, mut slices, mut filled) = (plan.shape.key.min.clone(), 0, 0);
    loop {
        let last = format!(
            "select s.id::text from (select q.{key} as id from {table} as q where q.{key} >= {after} order by q.{key} limit {SLICE}) as s
             order by s.id desc limit 1"
        );
        let rows = client.query_typed(&last, &[]).await.map_err(failed)?;
        let Some(last) = rows.first().map(|row| format!("{}::{}", literal(row.get(0)), plan.key_type)) else { return Ok(filled) };
        if last == after {
            return Ok(filled);
        }
        filled += slice(client, plan, &format!("q.{key} >= {after} and q.{key} <= {last}")).await?;
        after = last;
        slices += 1;
        if slices % 20 == 0 {
            say(&format!("read {} rows of {table}", slices * SLICE));
        }
    }
}

fn failed(e: tokio_postgres::Error) -> Error {
    Error::doing("fill in the times of waiting rows")(e)
}

/// Fills the rows that meet `condition`: together or, if one of them rejects the change, one by one.
async fn slice(client: &mut Client, plan: &Plan, condition: &str) -> Result<u64> {
    let now: String = client.query_typed("select clock_timestamp()::text", &[]).await.map_err(failed)?[0].get(0);
    let now = format!("timestamptz {}", literal(&now));
    let mut held_until = format!("({now} + {})", plan.shape.hold);
    if plan.shape.distributed {
        // Shards are given a constant.
        let until: String = client.query_typed(&format!("select {held_until}::text"), &[]).await.map_err(failed)?[0].get(0);
        held_until = format!("timestamptz {}", literal(&until));
    }
    match run(client, plan, &render::fill(plan, &now, &held_until, condition)?).await {
        Err(e) if is_of_the_row(&e) => {}
        other => return other.map_err(failed),
    }
    let mut filled = 0;
    for (tenant, key, this_row) in rows(client, plan, condition).await? {
        match run(client, plan, &render::fill(plan, &now, &held_until, &this_row)?).await {
            Err(e) if is_of_the_row(&e) => {
                let reason = e.as_db_error().map(|e| e.message()).unwrap_or_default();
                let [queue, tenant, key, reason] = [&plan.name, &tenant, &key, reason].map(literal);
                run(client, plan, &format!("select gleaner.reject_row({queue}, {tenant}, {key}, {reason})")).await.map_err(failed)?;
            }
            other => filled += other.map_err(failed)?,
        }
    }
    Ok(filled)
}

/// The rows that meet `condition` and have no time: tenant and key, as `gleaner.rejected_row` has them, and a condition that finds the row.
async fn rows(client: &Client, plan: &Plan, condition: &str) -> Result<Vec<(String, String, String)>> {
    let shape = &plan.shape;
    let row: Vec<String> = [&shape.key.column].into_iter().chain(shape.parts.iter().map(|p| &p.column)).map(|c| format!("q.{c}")).collect();
    let key = if shape.parts.is_empty() { format!("{}::text", row[0]) } else { format!("({})::text", row.join(", ")) };
    let tenant = shape.tenant.as_ref().map(|t| format!("q.{}", t.column));
    let whole: Vec<String> = tenant.iter().chain(&row).cloned().collect();
    let these: Vec<String> = whole.iter().map(|c| format!("{} = %L", in_format(c))).collect();
    let list = format!(
        "select {}, {key}, format('{}', {}) from {} as q where q.{} is null and {condition} order by {}",
        tenant.map_or("''".into(), |t| format!("{t}::text")),
        these.join(" and "),
        whole.join(", "),
        plan.table.sql(),
        shape.col.due,
        row[0],
    );
    let rows = client.query_typed(&list, &[]).await.map_err(failed)?;
    Ok(rows.iter().map(|r| (r.get(0), r.get(1), r.get(2))).collect())
}

/// Runs one statement as the acts run, so that the adapter leaves it alone and triggers find the names they were written with.
/// Returns how many rows it changed.
async fn run(client: &mut Client, plan: &Plan, statement: &str) -> std::result::Result<u64, tokio_postgres::Error> {
    let tx = client.transaction().await?;
    let (role, path) = (quote(plan.acts_owner()), &plan.shape.search_path);
    tx.batch_execute(&format!(
        "set local role {role}; set local search_path = {path}; set local enable_seqscan = off; set local jit = off"
    ))
    .await?;
    let changed = tx.execute_typed(statement, &[]).await?;
    tx.commit().await?;
    Ok(changed)
}

/// Whether a check or a trigger rejected the change. Anything else is trouble of the moment, and the caller's.
fn is_of_the_row(e: &tokio_postgres::Error) -> bool {
    let momentary = ["40", "53", "57", "58", "XX", "55P03"];
    e.code().is_some_and(|code| !momentary.iter().any(|m| code.code().starts_with(m)))
}
