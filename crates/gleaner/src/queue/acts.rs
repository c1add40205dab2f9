//! The acts as statements, for any connection.

use std::time::Duration;

use serde_json::Value;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Row};

use super::answer::{Answer, Outcome};
use super::keys::KeyType;
use super::ranges::BulkRanges;
use super::request::{Completion, Failure, Held, Progress};
use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::introspect::{Table, literal, quote};
use crate::plan::Plan;
use crate::registry;

/// The acts of one queue as statements. It has no connection of its own and runs on any.
#[derive(Debug, Clone)]
pub struct Acts {
    pub(super) name: String,
    pub(super) table: String,
    pub(super) key: String,
    pub(super) key_type: KeyType,
    pub(super) owner: Option<(String, String)>,
    pub(super) kind: Option<String>,
    /// The column, and whether it is jsonb already.
    pub(super) payload: Option<(String, bool)>,
    pub(super) result: Option<(String, bool)>,
    pub(super) columns: Columns,
    pub(super) tenant: Option<(String, String)>,
    pub(super) declaration: Declaration,
    pub(super) ranges: Option<BulkRanges>,
    notified: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Columns {
    pub(super) due: String,
    pub(super) lease: String,
    pub(super) deadline: String,
    pub(super) attempts: String,
    pub(super) status: String,
    /// The status values that a held row may have, as SQL.
    pub(super) held: String,
    /// The column with the time from which other owners' agents may claim the row; `None` without owners.
    pub(super) open: Option<String>,
    /// The rows that are not finished, as SQL: a source called `q`.
    pub(super) unfinished: String,
}

pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

impl Acts {
    /// The acts of the queue `name`, as the registry of this database declares it.
    pub async fn of(client: &impl GenericClient, name: &str) -> Result<Self> {
        let entry = registry::find(client, name).await?;
        let plan = Plan::make(client, &entry.declaration).await?;
        let shape = &plan.shape;
        Ok(Self {
            name: plan.name.clone(),
            table: plan.table.sql(),
            key: quote(&plan.key),
            key_type: KeyType::new(&plan.key_type),
            owner: shape.owner.as_ref().map(|o| (o.column.clone(), o.data_type.clone())),
            kind: shape.kind.as_ref().map(|k| k.column.clone()),
            payload: entry
                .declaration
                .payload
                .as_deref()
                .map(|p| (quote(p), plan.table.columns.get(p).is_some_and(|c| c.data_type == "jsonb"))),
            result: shape.result.as_ref().map(|r| (r.column.clone(), r.is_jsonb())),
            columns: Columns {
                due: shape.col.due.clone(),
                lease: shape.col.lease.clone(),
                deadline: shape.col.deadline.clone(),
                attempts: shape.col.attempts.clone(),
                status: shape.status.column.clone(),
                held: shape.status.held.clone(),
                open: shape.col.open.clone(),
                unfinished: shape.unfinished.clone(),
            },
            tenant: None,
            notified: is_notified(client, &plan).await?,
            ranges: BulkRanges::of(&plan),
            declaration: entry.declaration,
        })
    }

    /// The queue's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table, quoted and schema-qualified.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Whether a trigger notifies workers of every new row, so that writers need not.
    pub fn is_notified(&self) -> bool {
        self.notified
    }

    /// What the author of the queue declared.
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

    /// `p_tenant => …, ` if the queue has tenants. The tenant is the last parameter of the statement.
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

    /// Whether a batch lease holds the row `q`, as SQL.
    pub(super) fn in_batch(&self) -> String {
        format!("q.{} in (0, -1) and q.{} <@ (select gleaner.batch_keys({}))", self.columns.lease, self.key, literal(&self.name))
    }

    /// Which of these rows are certainly no longer held: cancelled, finished or claimed by another agent. A plain query that
    /// takes no lock and extends no lease. Rows that the caller cannot see are not reported.
    pub async fn ended(&self, client: &impl GenericClient, held: &[Held]) -> Result<Vec<Held>> {
        let (keys, leases): (Vec<&str>, Vec<i64>) = held.iter().map(|h| (h.key.as_str(), h.lease)).unzip();
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
            if self.declaration.bulk.is_some() { format!(" and not (u.lease < 0 and {})", self.in_batch()) } else { String::new() },
        );
        let rows = self.query(client, "check running work", &sql, &[(&keys, Type::TEXT_ARRAY), (&leases, Type::INT8_ARRAY)]).await?;
        Ok(rows.iter().map(|r| Held { key: r.get(0), lease: r.get(1) }).collect())
    }

    /// Marks claimed rows as started.
    pub async fn start(&self, client: &impl GenericClient, held: &[Held]) -> Result<Vec<Answer>> {
        self.for_held(client, "start", held).await
    }

    /// Gives rows back without counting an attempt.
    pub async fn release(&self, client: &impl GenericClient, held: &[Held]) -> Result<Vec<Answer>> {
        self.for_held(client, "release", held).await
    }

    async fn for_held(&self, client: &impl GenericClient, act: &'static str, held: &[Held]) -> Result<Vec<Answer>> {
        let keys = self.key_type.array(held.iter().map(|h| h.key.as_str()));
        let leases: Vec<i64> = held.iter().map(|h| h.lease).collect();
        let sql = format!(
            "select id::text, outcome, status from gleaner.{act}_{}({}p_ids => {}, p_leases => $2)",
            self.name,
            self.tenant(3),
            keys.sql(1)
        );
        answers(&self.query(client, act, &sql, &[keys.param(), (&leases, Type::INT8_ARRAY)]).await?)
    }

    /// Extends the lease and stores partial results; the answer says how long the lease now lasts.
    pub async fn progress(&self, client: &impl GenericClient, held: &Held, progress: &Progress) -> Result<(Answer, Duration)> {
        let hold = progress.hold.map(|hold| hold.as_secs_f64());
        let params: [Param<'_>; 6] = [
            (&held.key, Type::TEXT),
            (&held.lease, Type::INT8),
            (&progress.stage, Type::TEXT),
            (&progress.percent, Type::FLOAT8),
            (&progress.partial, Type::JSONB),
            (&hold, Type::FLOAT8),
        ];
        let sql = format!(
            "select id::text, outcome, status, extract(epoch from due_at - clock_timestamp())::float8
             from gleaner.progress_{}({}p_id => $1::text::{}, p_lease => $2, p_stage => $3, p_percent => $4::float8::numeric, p_partial => $5, p_hold => $6 * interval '1 second')",
            self.name,
            self.tenant(7),
            self.key_type
        );
        let rows = self.query(client, "progress", &sql, &params).await?;
        let left = rows.first().and_then(|r| r.get::<_, Option<f64>>(3)).unwrap_or(0.0).max(0.0);
        Ok((one(answers(&rows)?, "progress")?, Duration::try_from_secs_f64(left).unwrap_or_default()))
    }

    /// Stores results and ends the leases. Answers are grouped by outcome.
    pub async fn complete(&self, client: &impl GenericClient, done: &[Completion]) -> Result<Vec<Answer>> {
        let keys = self.key_type.array(done.iter().map(|d| d.held.key.as_str()));
        let leases: Vec<i64> = done.iter().map(|d| d.held.lease).collect();
        let results: Option<Vec<Option<&Value>>> =
            done.iter().any(|d| d.result.is_some()).then(|| done.iter().map(|d| d.result.as_ref()).collect());
        // Keys that are returned unchanged need not be sent back.
        let sql = format!(
            "select nullif(ids, {ids})::text[], outcome, status
             from gleaner.complete_{}_many({}p_ids => {ids}, p_leases => $2, p_results => $3)",
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
                None => all.extend(done.iter().map(|d| answer(d.held.key.clone()))),
            }
        }
        Ok(all)
    }

    /// Records that the work failed.
    pub async fn fail(&self, client: &impl GenericClient, held: &Held, failure: &Failure) -> Result<Answer> {
        let retry_in = failure.retry_in.map(|r| r.as_secs_f64());
        let sql = format!(
            "select id::text, outcome, status from gleaner.fail_{}({}p_id => $1::text::{}, p_lease => $2, p_message => $3, p_category => $4, p_retryable => $5, p_retry_in => $6 * interval '1 second')",
            self.name,
            self.tenant(7),
            self.key_type
        );
        let params: [Param<'_>; 6] = [
            (&held.key, Type::TEXT),
            (&held.lease, Type::INT8),
            (&failure.message, Type::TEXT),
            (&failure.category, Type::TEXT),
            (&failure.retryable, Type::BOOL),
            (&retry_in, Type::FLOAT8),
        ];
        one(answers(&self.query(client, "fail", &sql, &params).await?)?, "fail")
    }

    /// Postpones the work without counting an attempt.
    pub async fn snooze(&self, client: &impl GenericClient, held: &Held, by: Duration) -> Result<Answer> {
        let sql = format!(
            "select id::text, outcome, status from gleaner.snooze_{}({}p_id => $1::text::{}, p_lease => $2, p_until => clock_timestamp() + $3 * interval '1 second')",
            self.name,
            self.tenant(4),
            self.key_type
        );
        let by = by.as_secs_f64();
        let params: [Param<'_>; 3] = [(&held.key, Type::TEXT), (&held.lease, Type::INT8), (&by, Type::FLOAT8)];
        one(answers(&self.query(client, "snooze", &sql, &params).await?)?, "snooze")
    }

    /// Cancels rows, including running ones.
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

    /// Makes rows due again, for operators.
    pub async fn requeue(&self, client: &impl GenericClient, keys: &[&str]) -> Result<Vec<Answer>> {
        self.for_keys(client, "requeue", keys, None).await
    }

    /// Makes rows dead, for operators.
    pub async fn bury(&self, client: &impl GenericClient, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        self.for_keys(client, "bury", keys, Some(("p_reason", reason))).await
    }

    /// Changes the owner of rows, for operators; no owner opens the rows to everyone.
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

    /// Changes the due time of rows that wait, for operators. `due` is a time as PostgreSQL reads it, such as `2026-05-04T09:00:00Z`.
    pub async fn reschedule(&self, client: &impl GenericClient, keys: &[&str], due: &str) -> Result<Vec<Answer>> {
        let sql = format!(
            "select id::text, outcome, status from gleaner.reschedule_{}({}p_ids => $1::text[]::{}[], p_due => $2::text::timestamptz)",
            self.name,
            self.tenant(3),
            self.key_type
        );
        answers(&self.query(client, "reschedule", &sql, &[(&keys, Type::TEXT_ARRAY), (&due, Type::TEXT)]).await?)
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

    /// Sets rows with an expired lease back to the ready status. Nothing depends on it.
    pub async fn recover(&self, client: &impl GenericClient) -> Result<i32> {
        let rows = client
            .query_typed(&format!("select gleaner.recover_{}()", self.name), &[])
            .await
            .map_err(|e| Error::doing(format!("recover in {}", self.name))(e))?;
        Ok(rows[0].get(0))
    }

    /// Up to `limit` tenants that have claimable rows, the one that has waited longest first. An agent that serves many tenants
    /// claims for each in turn, with [`within`](Self::within).
    pub async fn due_tenants(&self, client: &impl GenericClient, limit: i32) -> Result<Vec<String>> {
        if self.declaration.tenant.is_none() {
            return Err(Error::Unsupported { queue: self.name.clone(), what: "has no tenants".into() });
        }
        let rows = client
            .query_typed(&format!("select t::text from gleaner.due_tenants_{}($1) as t", self.name), &[(&limit, Type::INT4)])
            .await
            .map_err(|e| Error::doing(format!("look for tenants with work in {}", self.name))(e))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Why an agent of `owner` can or cannot claim the row, and when it can. `None` when there is no such row.
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

/// Looks for the trigger itself, not at the declaration: a queue that an older version attached has none yet.
async fn is_notified(client: &impl GenericClient, plan: &Plan) -> Result<bool> {
    let sql = "select exists (select from pg_trigger where tgrelid = to_regclass($1) and tgname = $2 and tgenabled in ('O', 'A'))";
    let (table, trigger) = (plan.table.sql(), format!("zz_gleaner_notify_{}", plan.name));
    let rows = client.query_typed(sql, &[(&table, Type::TEXT), (&trigger, Type::TEXT)]).await;
    Ok(rows.map_err(Error::doing("look for the queue's trigger"))?.first().is_some_and(|row| row.get(0)))
}

fn answers(rows: &[Row]) -> Result<Vec<Answer>> {
    Ok(rows.iter().map(|r| Answer { key: r.get(0), outcome: Outcome::parse(r.get(1)), status: r.get(2) }).collect())
}

fn one(mut answers: Vec<Answer>, act: &str) -> Result<Answer> {
    answers.pop().ok_or_else(|| Error::Other(format!("{act} gave no answer")))
}
