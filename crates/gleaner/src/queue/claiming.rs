//! Claims, and how long until one can succeed.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::acts::{Acts, Param};
use super::answer::{Claimed, Item, Waiting};
use super::request::Claim;
use crate::error::{Error, Result};
use crate::introspect::quote;

/// From this many rows on, a second statement for an empty claim costs less than keeping all rows until it is known that there are some.
const MANY: i32 = 64;

impl Acts {
    /// Claims up to `limit` rows: the owner's own, then those without an owner, then stale ones.
    pub async fn claim(&self, client: &impl GenericClient, claim: &Claim) -> Result<Claimed> {
        Ok(self.claim_many(client, std::slice::from_ref(claim)).await?.pop().unwrap_or_default())
    }

    /// Several claims in one statement, in their order. All share the options of the first (owner, kinds, hold, early, whether
    /// the work starts at once); each has its own agent, limit and request id.
    pub async fn claim_many(&self, client: &impl GenericClient, claims: &[Claim]) -> Result<Vec<Claimed>> {
        let Some(claim) = claims.first() else { return Ok(Vec::new()) };
        let agents: Vec<&str> = claims.iter().map(|claim| claim.agent.as_str()).collect();
        let limits: Vec<i32> = claims.iter().map(|claim| claim.limit).collect();
        let requests: Vec<Option<Uuid>> = claims.iter().map(|claim| claim.request).collect();
        let hold = claim.hold.map(|h| h.as_secs_f64());
        let early = claim.early.as_secs_f64();
        let alone = claims.len() == 1;
        let mut params: Vec<Param<'_>> = if alone {
            vec![(&agents[0], Type::TEXT), (&limits[0], Type::INT4), (&requests[0], Type::UUID)]
        } else {
            vec![(&agents, Type::TEXT_ARRAY), (&limits, Type::INT4_ARRAY), (&requests, Type::UUID_ARRAY)]
        };
        params.extend([(&claim.started as &(dyn ToSql + Sync), Type::BOOL), (&hold, Type::FLOAT8), (&early, Type::FLOAT8)]);
        let wanted = self.wanted(claim, &mut params)?;
        let (name, item) = (&self.name, self.item());
        let call = |agent, most, request| {
            format!(
                "gleaner.claim_{name}({wanted}p_agent => {agent}, p_limit => {most}, p_request => {request}, p_started => $4, p_hold => $5 * interval '1 second', p_early => $6 * interval '1 second') as c"
            )
        };
        let claimed = if alone {
            format!("select {item}, null::float8, 1::int8 from {}", call("$1", "$2", "$3"))
        } else {
            format!(
                "select {item}, null::float8, a.position from unnest($1, $2, $3) with ordinality as a (agent, most, request, position) cross join lateral {}",
                call("a.agent", "a.most", "a.request")
            )
        };
        let few = limits.iter().all(|limit| *limit < MANY);
        let sql = if few {
            // One statement for both: the claimed rows in order, or how long until there is a row to claim.
            format!(
                "with claimed as materialized ({claimed})
                 select * from claimed
                 union all
                 select null, null, null, null, null, null, null, null, null, null, {next_due}, null where not exists (select from claimed)",
                next_due = self.next_due_sql(&wanted),
            )
        } else {
            claimed
        };
        let mut all = vec![Claimed::default(); claims.len()];
        let rows = self.query(client, "claim", &sql, &params).await?;
        let mut next: Option<f64> = None;
        for row in &rows {
            let Some(lease) = row.get(1) else {
                next = row.get(10);
                continue;
            };
            let position = row.get::<_, i64>(11) as usize - 1;
            // Both use the database's clock, which is the only authoritative one.
            let now: SystemTime = row.get(9);
            let left =
                |column: usize| row.get::<_, Option<SystemTime>>(column).and_then(|at| at.duration_since(now).ok()).unwrap_or_default();
            all[position].items.push(Item {
                key: self.key_type.read(row, 0),
                lease,
                kind: row.get(2),
                owner: row.get(3),
                attempts: row.get(4),
                payload: row.get::<_, Option<Value>>(5).unwrap_or_default(),
                partial: row.get(6),
                lease_for: left(7),
                deadline_in: left(8),
            });
        }
        if rows.is_empty() {
            let mut params = Vec::new();
            let sql = format!("select {}", self.next_due_sql(&self.wanted(claim, &mut params)?));
            next = self.query(client, "look for the next due time", &sql, &params).await?.first().and_then(|row| row.get(0));
        }
        if let Some(seconds) = next {
            let next = Duration::try_from_secs_f64(f64::max(seconds - early, 0.0)).unwrap_or(Duration::MAX);
            all.iter_mut().for_each(|claimed| claimed.next_due_in = Some(next));
        }
        Ok(all)
    }

    /// The arguments that `claim` and `next_due` share, with a comma after each; their values are added to `params`.
    fn wanted<'a>(&self, claim: &'a Claim, params: &mut Vec<Param<'a>>) -> Result<String> {
        let mut arguments = String::new();
        if let Some((_, data_type)) = &self.owner {
            params.push((&claim.owner, Type::TEXT));
            arguments += &format!("p_owner => ${}::text::{data_type}, ", params.len());
        } else if claim.owner.is_some() {
            return Err(Error::Unsupported { queue: self.name.clone(), what: "has no owners: claim without one".into() });
        }
        if self.kind.is_some() {
            params.push((&claim.kinds, Type::TEXT_ARRAY));
            arguments += &format!("p_kinds => ${}, ", params.len());
        } else if claim.kinds.is_some() {
            return Err(Error::Unsupported { queue: self.name.clone(), what: "has no kinds: claim without them".into() });
        }
        Ok(self.tenant(params.len() + 1) + &arguments)
    }

    fn next_due_sql(&self, wanted: &str) -> String {
        format!("extract(epoch from gleaner.next_due_{}({}))::float8", self.name, wanted.trim_end_matches(", "))
    }

    /// The columns of a claimed row `c` that make an [`Item`], and the time at which they were read.
    fn item(&self) -> String {
        let text = |column: Option<&String>| column.map_or_else(|| "null::text".to_owned(), |c| format!("c.{c}::text"));
        // A column that is jsonb already is used unchanged. Others become json: half the work of jsonb, which would be printed as text too.
        let json = |(column, already): &(String, bool)| if *already { format!("c.{column}") } else { format!("to_json(c.{column})") };
        format!(
            "{key}, c.{lease}, {kind}, {owner}, c.{attempts}::int4, {payload}, {partial}, c.{due}::timestamptz, c.{deadline}::timestamptz, clock_timestamp()",
            key = self.key_type.output(&format!("c.{}", self.key)),
            lease = self.columns.lease,
            kind = text(self.kind.as_ref()),
            owner = text(self.owner.as_ref().map(|(column, _)| column)),
            attempts = self.columns.attempts,
            payload = self.payload.as_ref().map_or_else(|| "to_json(c)".to_owned(), json),
            partial = self.result.as_ref().map_or_else(|| "null::jsonb".to_owned(), json),
            due = self.columns.due,
            deadline = self.columns.deadline,
        )
    }

    /// Whether rows have owners, and claims name one.
    pub fn has_owners(&self) -> bool {
        self.owner.is_some()
    }

    /// Whether rows have kinds, and claims may name some.
    pub fn has_kinds(&self) -> bool {
        self.kind.is_some()
    }

    /// How many rows a claim like this one could take now. A plain query with the caller's rights over at most ten thousand rows,
    /// so that a dashboard cannot overload the database.
    pub async fn waiting(&self, client: &impl GenericClient, claim: &Claim) -> Result<Waiting> {
        let mut params: Vec<Param<'_>> = Vec::new();
        let mut wanted = format!("q.{} <= clock_timestamp()", self.columns.due);
        if self.declaration.bulk.is_some() {
            wanted += &format!(" and not ({})", self.in_batch());
        }
        if let (Some((column, data_type)), Some(open)) = (&self.owner, &self.columns.open) {
            params.push((&claim.owner, Type::TEXT));
            wanted +=
                &format!(" and (q.{column} is null or q.{column} = ${}::text::{data_type} or q.{open} <= clock_timestamp())", params.len());
        }
        if let (Some(column), Some(kinds)) = (&self.kind, &claim.kinds) {
            params.push((kinds, Type::TEXT_ARRAY));
            wanted += &format!(" and q.{column}::text = any (${})", params.len());
        }
        let tenant = self.tenant.as_ref().map_or_else(String::new, |(data_type, _)| {
            format!(" and q.{} = ${}::text::{data_type}", quote(self.declaration.tenant.as_deref().unwrap_or_default()), params.len() + 1)
        });
        let sql = format!(
            "select count(*) filter (where {wanted}), count(*) > 10000
             from (select q.* from {} where true{tenant} limit 10001) as q",
            self.columns.unfinished
        );
        let rows = self.query(client, "count what waits", &sql, &params).await?;
        let row = rows.first().ok_or_else(|| Error::Other("a count gave no row".into()))?;
        Ok(Waiting { count: row.get::<_, i64>(0).unsigned_abs(), capped: row.get(1) })
    }
}
