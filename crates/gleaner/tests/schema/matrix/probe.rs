//! Runs a statement as a given caller, and rolls it back.

use anyhow::{Context as _, Result, bail};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use super::WORKER_HASH;

/// A caller: the role of its token, and the token's claims.
pub(super) struct Caller {
    pub name: &'static str,
    role: &'static str,
    claims: String,
}

/// One of each kind, in the order of the matrix's columns. `seed.sql` defines them.
pub(super) async fn callers(client: &Client) -> Result<Vec<Caller>> {
    let user = |n: u8| format!(r#"{{"role": "authenticated", "sub": "00000000-0000-0000-0000-00000000000{n}", "session_id": "s{n}"}}"#);
    let worker: serde_json::Value = client.query_one("select gleaner.verify_key($1)", &[&WORKER_HASH]).await?.get(0);
    let caller = |name, role, claims| Caller { name, role, claims };
    Ok(vec![
        caller("anon", "anon", r#"{"role": "anon"}"#.to_owned()),
        caller("stranger", "authenticated", user(9)),
        caller("former", "authenticated", user(4)),
        caller("member", "authenticated", user(1)),
        caller("private", "authenticated", user(2)),
        caller("admin", "authenticated", user(3)),
        caller("worker", "authenticated", worker.to_string()),
        caller("service", "service_role", r#"{"role": "service_role"}"#.to_owned()),
    ])
}

impl Caller {
    /// Runs a statement as this caller and rolls it back. Returns how many rows it affected, or the error.
    pub(super) async fn attempt(&self, client: &Client, sql: &str) -> Result<Result<u64, Error>> {
        client.batch_execute("begin").await?;
        client
            .query("select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", &[&self.role, &self.claims])
            .await?;
        let answer = client.execute(sql, &[]).await;
        client.batch_execute("rollback").await?;
        Ok(answer)
    }
}

/// A table or view of the catalogue, and those of its rows that a line of the matrix is about.
pub(super) struct Rows<'a> {
    pub relation: &'a str,
    pub condition: &'a str,
}

impl Rows<'_> {
    /// What the caller may do with these rows: `siud` for select, insert, update and delete, each letter or a dash. A dash is a
    /// statement that was refused or that affected no row; which of the two depends on the policies.
    pub(super) async fn cell(&self, client: &Client, caller: &Caller) -> Result<String> {
        let mut cell = String::new();
        for (letter, act) in [('s', "select"), ('i', "insert"), ('u', "update"), ('d', "delete")] {
            let may = self.may(client, caller, act).await.with_context(|| format!("{} {act} {}", caller.name, self.relation))?;
            cell.push(if may { letter } else { '-' });
        }
        Ok(cell)
    }

    async fn may(&self, client: &Client, caller: &Caller, act: &str) -> Result<bool> {
        let Self { relation, condition } = self;
        let about = client
            .query_one(
                "select c.relkind = 'v' and $2 <> 'select', has_table_privilege($3, c.oid, $2),
                        string_agg(quote_ident(a.attname), ', ') filter (where has_column_privilege($3, c.oid, a.attnum, 'insert')),
                        string_agg(quote_ident(a.attname), ', '),
                        (array_agg(quote_ident(a.attname) order by not has_column_privilege($3, c.oid, a.attnum, 'update'), a.attname <> 'payload', a.attnum))[1]
                 from pg_class as c join pg_attribute as a on a.attrelid = c.oid
                 where c.oid = $1::text::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity <> 'a'
                 group by c.oid, c.relkind",
                &[relation, &act, &caller.role],
            )
            .await?;
        // Nothing is written through our views, so only the right itself can be tested.
        if about.get(0) {
            return Ok(about.get(1));
        }
        let sql = match act {
            "select" => format!("select from {relation} where {condition}"),
            "insert" => {
                let columns: String = about.get::<_, Option<String>>(2).unwrap_or_else(|| about.get(3));
                let row =
                    client.query_one(&format!("select to_jsonb(r)::text from {relation} as r where {condition} limit 1"), &[]).await?;
                let row = row.get::<_, String>(0).replace('\'', "''");
                format!("insert into {relation} ({columns}) select {columns} from jsonb_populate_record(null::{relation}, '{row}')")
            }
            "update" => {
                let column: String = about.get(4);
                format!("update {relation} set {column} = {column} where {condition}")
            }
            "delete" => format!("delete from {relation} where {condition}"),
            other => bail!("no such act: {other}"),
        };
        match caller.attempt(client, &sql).await? {
            Ok(rows) => Ok(rows > 0),
            Err(error) => match error.code() {
                Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(false),
                // Rights and policies are checked first: only a caller that may insert learns that such a row already exists, and
                // only one that may delete learns that others refer to it.
                Some(&SqlState::UNIQUE_VIOLATION) if act == "insert" => Ok(true),
                Some(&SqlState::FOREIGN_KEY_VIOLATION | &SqlState::RESTRICT_VIOLATION) if act == "delete" => Ok(true),
                _ => Err(error).context(sql),
            },
        }
    }
}
