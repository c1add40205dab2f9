//! The acts as statements, for any connection.

use std::time::Duration;

use serde_json::Value;
use tokio_postgres::types::{Json, ToSql, Type};
use tokio_postgres::{CopyInSink, GenericClient, Row, Transaction};

use super::copy::{copy_key, copy_line};
use super::keys::KeyType;
use super::swaths::{Laid, Swaths};
use super::words::{Answer, Enqueued, Failure, OnDuplicate, Outcome};
use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::introspect::{Table, quote};
use crate::plan::Plan;
use crate::registry;

/// The acts of one queue as statements: no connection of its own, runs on any.
#[derive(Debug, Clone)]
pub struct Acts {
    pub(super) name: String,
    pub(super) table: String,
    pub(super) key: String,
    pub(super) key_type: KeyType,
    pub(super) owner: Option<(String, String)>,
    pub(super) kind: Option<String>,
    /// Column, and whether it is jsonb already.
    pub(super) payload: Option<(String, bool)>,
    pub(super) result: Option<(String, bool)>,
    pub(super) columns: Columns,
    pub(super) tenant: Option<(String, String)>,
    pub(super) declaration: Declaration,
    pub(super) swaths: Option<Swaths>,
}

#[derive(Debug, Clone)]
pub(super) struct Columns {
    pub(super) due: String,
    pub(super) lease: String,
    pub(super) deadline: String,
    pub(super) attempts: String,
    pub(super) status: String,
    /// The words a held row may have, as SQL.
    pub(super) held: String,
    /// From when others may take it; none without owners.
    pub(super) open: String,
    /// The rows that are not finished, as SQL: a source called `q`.
    pub(super) unfinished: String,
}

pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

impl Acts {
    /// The acts of the queue `name`, as the registry of this database declares it.
    pub async fn of(client: &impl GenericClient, name: &str) -> Result<Self> {
        let entry = registry::find(client, name).await?;
        let plan = Plan::make(client, &entry.declaration).await?;
        let column = |role: &str| plan.context["col"][role].as_str().unwrap_or_default().to_owned();
        let owner = plan.context["owner"]["column"]
            .as_str()
            .map(|c| (c.to_owned(), plan.context["owner"]["type"].as_str().unwrap_or("text").to_owned()));
        Ok(Self {
            name: plan.name.clone(),
            table: plan.table.sql(),
            key: quote(&plan.key),
            key_type: KeyType::new(&plan.key_type),
            owner,
            kind: plan.context["kind"]["column"].as_str().map(str::to_owned),
            payload: entry
                .declaration
                .payload
                .as_deref()
                .map(|p| (quote(p), plan.table.columns.get(p).is_some_and(|c| c.data_type == "jsonb"))),
            result: plan.context["result"]["column"].as_str().map(|c| (c.to_owned(), plan.context["result"]["type"] == "jsonb")),
            columns: Columns {
                due: column("due"),
                lease: column("lease"),
                deadline: column("deadline"),
                attempts: column("attempts"),
                status: plan.context["status"]["column"].as_str().unwrap_or_default().to_owned(),
                held: plan.context["status"]["held"].as_str().unwrap_or_default().to_owned(),
                open: column("open"),
                unfinished: plan.context["unfinished"].as_str().unwrap_or_default().to_owned(),
            },
            tenant: None,
            swaths: Swaths::of(&plan),
            declaration: entry.declaration,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn table(&self) -> &str {
        &self.table
    }

    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// The same acts within one tenant, for queues that declare a tenant column.
    pub async fn within(mut self, client: &impl GenericClient, tenant: impl Into<String>) -> Result<Self> {
        let Some(column) = &self.declaration.tenant else {
            return Err(Error::Unsupported { queue: self.name, what: "has no tenants".into() });
        };
        let table = Table::find(client, &self.declaration.table).await?;
        let data_type = table.and_then(|t| t.columns.get(column).map(|c| c.data_type.clone())).unwrap_or_else(|| "text".into());
        self.tenant = Some((data_type, tenant.into()));
        Ok(self)
    }

    /// `p_tenant => …, ` where the queue has tenants. The tenant is the last parameter of the statement.
    pub(super) fn tenant(&self, position: usize) -> String {
        self.tenant.as_ref().map_or_else(String::new, |(data_type, _)| format!("p_tenant => ${position}::text::{data_type}, "))
    }

    pub(super) async fn query(&self, client: &impl GenericClient, act: &'static str, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let mut params = params.to_vec();
        if let Some((_, tenant)) = &self.tenant {
            params.push((tenant, Type::TEXT));
        }
        client.query_typed(sql, &params).await.map_err(|e| Error::doing(format!("{act} in {}", self.name))(e))
    }

    /// Puts items in; their keys are columns of the table. In the caller's transaction when `client` is one.
    pub async fn enqueue(&self, client: &impl GenericClient, items: &[Value], on_duplicate: OnDuplicate) -> Result<Vec<Enqueued>> {
        let duplicate = match on_duplicate {
            OnDuplicate::Skip => "skip",
            OnDuplicate::Replace => "replace",
        };
        let sql = format!(
            "select {}, outcome from gleaner.enqueue_{}({}p_items => $1, p_on_duplicate => $2)",
            self.key_type.told("id"),
            self.name,
            self.tenant(3)
        );
        let rows = self.query(client, "enqueue", &sql, &[(&Json(items), Type::JSONB), (&duplicate, Type::TEXT)]).await?;
        Ok(rows.iter().map(|r| Enqueued { key: self.key_type.read(r, 0), outcome: r.get(1) }).collect())
    }

    /// Puts thousands in at once with COPY, in the caller's transaction. All items have the keys of the first; unique keys
    /// must not collide. What is alike lies in swaths, where the queue has them: one entry in the line for a thousand rows.
    pub async fn enqueue_copy(&self, client: &Transaction<'_>, items: &[Value]) -> Result<u64> {
        use futures_util::{SinkExt, pin_mut};
        let Some(first) = items.first().and_then(Value::as_object) else { return Ok(0) };
        let names: Vec<&String> = first.keys().collect();
        let laid = self.number(client, items, &names).await?;
        let mut columns: Vec<String> = names.iter().map(|n| quote(n)).collect();
        if laid.is_some() {
            columns.splice(0..0, [self.key.clone(), self.columns.lease.clone()]);
        }
        let sink: CopyInSink<bytes::Bytes> = client
            .copy_in(&format!("copy {} ({}) from stdin", self.table, columns.join(", ")))
            .await
            .map_err(|e| Error::doing(format!("enqueue by copy in {}", self.name))(e))?;
        pin_mut!(sink);
        let failed = |e| Error::doing(format!("enqueue by copy in {}", self.name))(e);
        let mut buffer = Vec::with_capacity(1 << 16);
        let mut keys = laid.iter().flat_map(Laid::keys);
        for item in items {
            if let Some((key, lies)) = keys.next() {
                copy_key(&mut buffer, key, lies);
            }
            copy_line(&mut buffer, &names, item);
            if buffer.len() > (1 << 16) - 4096 {
                sink.send(std::mem::replace(&mut buffer, Vec::with_capacity(1 << 16)).into()).await.map_err(failed)?;
            }
        }
        sink.send(buffer.into()).await.map_err(failed)?;
        let count = sink.finish().await.map_err(failed)?;
        if let Some(laid) = &laid {
            self.lay(client, laid).await?;
        }
        Ok(count)
    }

    /// Whether a sheaf holds the row `q`, as SQL.
    pub(super) fn in_sheaf(&self) -> String {
        format!("q.{} in (0, -1) and q.{} <@ (select gleaner.sheaves('{}'))", self.columns.lease, self.key, self.name)
    }

    /// Which of these are certainly no longer held: cancelled, finished or taken by somebody else. One plain look, no lock and no
    /// sign of life; rows that cannot be seen are not judged.
    pub async fn ended(&self, client: &impl GenericClient, held: &[(&str, i64)]) -> Result<Vec<(String, i64)>> {
        let (keys, leases): (Vec<&str>, Vec<i64>) = held.iter().copied().unzip();
        let sql = format!(
            "select q.{0}::text, u.lease from unnest($1::text[]::{1}[], $2) as u (id, lease) join {2} as q on q.{0} = u.id
             where (q.{3} is distinct from u.lease or q.{4} not in ({5})){6}{7}",
            self.key,
            self.key_type,
            self.table,
            self.columns.lease,
            self.columns.status,
            self.columns.held,
            self.tenant.as_ref().map_or_else(String::new, |(data_type, _)| format!(
                " and q.{} = $3::text::{data_type}",
                quote(self.declaration.tenant.as_deref().unwrap_or_default())
            )),
            if self.declaration.sheaf.is_some() { format!(" and not (u.lease < 0 and {})", self.in_sheaf()) } else { String::new() },
        );
        let rows = self.query(client, "look after running work", &sql, &[(&keys, Type::TEXT_ARRAY), (&leases, Type::INT8_ARRAY)]).await?;
        Ok(rows.iter().map(|r| (r.get(0), r.get(1))).collect())
    }

    /// Marks claimed rows as begun.
    pub async fn start(&self, client: &impl GenericClient, held: &[(&str, i64)]) -> Result<Vec<Answer>> {
        self.for_held(client, "start", held).await
    }

    /// Gives rows back without burning an attempt.
    pub async fn release(&self, client: &impl GenericClient, held: &[(&str, i64)]) -> Result<Vec<Answer>> {
        self.for_held(client, "release", held).await
    }

    async fn for_held(&self, client: &impl GenericClient, act: &'static str, held: &[(&str, i64)]) -> Result<Vec<Answer>> {
        let keys = self.key_type.send(held.iter().map(|h| h.0));
        let leases: Vec<i64> = held.iter().map(|h| h.1).collect();
        let sql = format!(
            "select id::text, outcome, status from gleaner.{act}_{}({}p_ids => {}, p_leases => $2)",
            self.name,
            self.tenant(3),
            keys.sql(1)
        );
        answers(&self.query(client, act, &sql, &[keys.param(), (&leases, Type::INT8_ARRAY)]).await?)
    }

    /// Shows life and partial results; the answer says how long the lease now lasts.
    pub async fn progress(
        &self,
        client: &impl GenericClient,
        key: &str,
        lease: i64,
        stage: Option<&str>,
        percent: Option<f64>,
        partial: Option<&Value>,
    ) -> Result<(Answer, Duration)> {
        let sql = format!(
            "select id::text, outcome, status, extract(epoch from due_at - clock_timestamp())::float8
             from gleaner.progress_{}({}p_id => $1::text::{}, p_lease => $2, p_stage => $3, p_percent => $4::float8::numeric, p_partial => $5)",
            self.name, self.tenant(6), self.key_type
        );
        let rows = self
            .query(
                client,
                "progress",
                &sql,
                &[(&key, Type::TEXT), (&lease, Type::INT8), (&stage, Type::TEXT), (&percent, Type::FLOAT8), (&partial, Type::JSONB)],
            )
            .await?;
        let left = rows.first().and_then(|r| r.get::<_, Option<f64>>(3)).unwrap_or(0.0).max(0.0);
        Ok((one(answers(&rows)?, "progress")?, Duration::try_from_secs_f64(left).unwrap_or_default()))
    }

    /// Results in, leases out. Answers come grouped by what became of the rows.
    pub async fn complete(&self, client: &impl GenericClient, done: &[(&str, i64, Option<Value>)]) -> Result<Vec<Answer>> {
        let keys = self.key_type.send(done.iter().map(|d| d.0));
        let leases: Vec<i64> = done.iter().map(|d| d.1).collect();
        let results: Option<Vec<Option<&Value>>> = done.iter().any(|d| d.2.is_some()).then(|| done.iter().map(|d| d.2.as_ref()).collect());
        // Keys that come back as they were sent need not be sent back.
        let sql = format!(
            "select nullif(ids, {ids})::text[], outcome, status
             from gleaner.complete_{}_grouped({}p_ids => {ids}, p_leases => $2, p_results => $3)",
            self.name,
            self.tenant(4),
            ids = keys.sql(1),
        );
        let params: [Param<'_>; 3] = [keys.param(), (&leases, Type::INT8_ARRAY), (&results, Type::JSONB_ARRAY)];
        let mut all = Vec::with_capacity(done.len());
        for row in &self.query(client, "complete", &sql, &params).await? {
            let (outcome, status) = (Outcome::parse(row.get(1)), row.get::<_, Option<String>>(2));
            let answer = |key| Answer { key, outcome, status: status.clone() };
            match row.get::<_, Option<Vec<String>>>(0) {
                Some(keys) => all.extend(keys.into_iter().map(answer)),
                None => all.extend(done.iter().map(|d| answer(d.0.to_owned()))),
            }
        }
        Ok(all)
    }

    /// Says that the work failed.
    pub async fn fail(&self, client: &impl GenericClient, key: &str, lease: i64, failure: &Failure) -> Result<Answer> {
        let retry_in = failure.retry_in.map(|r| r.as_secs_f64());
        let sql = format!(
            "select id::text, outcome, status from gleaner.fail_{}({}p_id => $1::text::{}, p_lease => $2, p_message => $3, p_category => $4, p_retryable => $5, p_retry_in => $6 * interval '1 second')",
            self.name,
            self.tenant(7),
            self.key_type
        );
        let params: [Param<'_>; 6] = [
            (&key, Type::TEXT),
            (&lease, Type::INT8),
            (&failure.message, Type::TEXT),
            (&failure.category, Type::TEXT),
            (&failure.retryable, Type::BOOL),
            (&retry_in, Type::FLOAT8),
        ];
        one(answers(&self.query(client, "fail", &sql, &params).await?)?, "fail")
    }

    /// Puts the work off, without burning an attempt.
    pub async fn snooze(&self, client: &impl GenericClient, key: &str, lease: i64, by: Duration) -> Result<Answer> {
        let sql = format!(
            "select id::text, outcome, status from gleaner.snooze_{}({}p_id => $1::text::{}, p_lease => $2, p_until => clock_timestamp() + $3 * interval '1 second')",
            self.name,
            self.tenant(4),
            self.key_type
        );
        one(
            answers(
                &self.query(client, "snooze", &sql, &[(&key, Type::TEXT), (&lease, Type::INT8), (&by.as_secs_f64(), Type::FLOAT8)]).await?,
            )?,
            "snooze",
        )
    }

    /// Ends rows that nobody should work any more; running ones too.
    pub async fn cancel(&self, client: &impl GenericClient, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        self.for_keys(client, "cancel", keys, Some(("p_reason", reason))).await
    }

    /// Cancels every unfinished row whose columns have these values.
    pub async fn cancel_matching(&self, client: &impl GenericClient, matching: &Value, reason: Option<&str>) -> Result<Vec<Answer>> {
        let sql = format!(
            "select id::text, outcome, status from gleaner.cancel_{}_matching({}p_match => $1, p_reason => $2)",
            self.name,
            self.tenant(3)
        );
        answers(&self.query(client, "cancel", &sql, &[(matching, Type::JSONB), (&reason, Type::TEXT)]).await?)
    }

    /// An operator's retry.
    pub async fn requeue(&self, client: &impl GenericClient, keys: &[&str]) -> Result<Vec<Answer>> {
        self.for_keys(client, "requeue", keys, None).await
    }

    /// An operator's skip.
    pub async fn bury(&self, client: &impl GenericClient, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        self.for_keys(client, "bury", keys, Some(("p_reason", reason))).await
    }

    /// An operator's change of owner; none gives the rows to everybody.
    pub async fn assign(&self, client: &impl GenericClient, keys: &[&str], owner: Option<&str>) -> Result<Vec<Answer>> {
        let Some((_, data_type)) = &self.owner else {
            return Err(Error::Unsupported { queue: self.name.clone(), what: "has no owners".into() });
        };
        let sql = format!(
            "select id::text, outcome, status from gleaner.assign_{}({}p_ids => $1::text[]::{}[], p_owner => $2::text::{data_type})",
            self.name,
            self.tenant(3),
            self.key_type
        );
        answers(&self.query(client, "assign", &sql, &[(&keys, Type::TEXT_ARRAY), (&owner, Type::TEXT)]).await?)
    }

    async fn for_keys(
        &self,
        client: &impl GenericClient,
        act: &'static str,
        keys: &[&str],
        extra: Option<(&str, Option<&str>)>,
    ) -> Result<Vec<Answer>> {
        let mut params: Vec<Param<'_>> = vec![(&keys, Type::TEXT_ARRAY)];
        let mut arguments = format!("p_ids => $1::text[]::{}[]", self.key_type);
        if let Some((name, value)) = &extra {
            arguments += &format!(", {name} => $2");
            params.push((value, Type::TEXT));
        }
        let sql =
            format!("select id::text, outcome, status from gleaner.{act}_{}({}{arguments})", self.name, self.tenant(params.len() + 1));
        answers(&self.query(client, act, &sql, &params).await?)
    }

    /// Shows rows with a lapsed lease as waiting again. Nothing depends on it.
    pub async fn recover(&self, client: &impl GenericClient) -> Result<i32> {
        let rows = client
            .query_typed(&format!("select gleaner.recover_{}()", self.name), &[])
            .await
            .map_err(|e| Error::doing(format!("recover in {}", self.name))(e))?;
        Ok(rows[0].get(0))
    }

    /// Why the row is or is not claimable by an agent of `owner`, and when it will be. None when there is no such row.
    pub async fn explain(&self, client: &impl GenericClient, key: &str, owner: Option<&str>) -> Result<Option<Value>> {
        let mut params: Vec<Param<'_>> = vec![(&key, Type::TEXT)];
        let mut arguments = format!("p_id => $1::text::{}", self.key_type);
        if let Some((_, data_type)) = &self.owner {
            params.push((&owner, Type::TEXT));
            arguments += &format!(", p_owner => $2::text::{data_type}");
        }
        let sql = format!("select gleaner.explain_{}({}{arguments})", self.name, self.tenant(params.len() + 1));
        Ok(self.query(client, "explain", &sql, &params).await?[0].get(0))
    }

    /// Deletes finished rows older than the declared retention, in steps of a thousand. Returns how many.
    pub async fn prune(&self, client: &impl GenericClient, older_than: Option<Duration>) -> Result<u64> {
        if self.declaration.finished.is_none() {
            return Err(Error::Unsupported {
                queue: self.name.clone(),
                what: "does not know when work ended: declare `finished` to prune".into(),
            });
        }
        let older_than = older_than.map(|o| o.as_secs_f64());
        let sql = format!("select gleaner.prune_{}(1000, $1 * interval '1 second')", self.name);
        let mut pruned = 0;
        loop {
            let rows = client
                .query_typed(&sql, &[(&older_than, Type::FLOAT8)])
                .await
                .map_err(|e| Error::doing(format!("prune {}", self.name))(e))?;
            let n: i32 = rows[0].get(0);
            pruned += u64::from(n.unsigned_abs());
            if n < 1000 {
                return Ok(pruned);
            }
        }
    }
}

fn answers(rows: &[Row]) -> Result<Vec<Answer>> {
    Ok(rows.iter().map(|r| Answer { key: r.get(0), outcome: Outcome::parse(r.get(1)), status: r.get(2) }).collect())
}

fn one(mut answers: Vec<Answer>, act: &str) -> Result<Answer> {
    answers.pop().ok_or_else(|| Error::Other(format!("{act} gave no answer")))
}
