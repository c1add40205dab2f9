//! Reads a page of rows, with their counts.

use gleaner_http::WireError;

use super::{Compiler, Scope, Statement, where_all};
use crate::rest::catalogue::Relation;

/// What is wanted of a page.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    /// Also count the rows without limit and offset.
    pub count: bool,
    /// The most rows, whatever the client asks for.
    pub most: Option<u64>,
    /// Only the headers of the response are wanted.
    pub head_only: bool,
    /// Rows that were written: all are returned.
    pub written: bool,
}

/// The source of a page.
#[derive(Debug)]
pub(super) struct Source<'s> {
    /// What precedes the statement: `with … as (…) `, or nothing.
    pub with: &'s str,
    pub from: &'s str,
    /// Conditions on its rows.
    pub conditions: Vec<String>,
    /// An expression for the last column of the answer.
    pub inserted: &'s str,
}

impl<'a> Compiler<'a> {
    /// A page of a table or view.
    pub(crate) fn read(mut self, relation: &'a Relation, reading: Reading) -> Result<Statement, WireError> {
        let scope = Scope::of(relation);
        let conditions = self.conditions(&scope, &[])?;
        let source = Source { with: "", from: &relation.sql, conditions, inserted: NO_NUMBER };
        let sql = self.present(&scope, source, reading)?;
        self.finish(sql)
    }

    /// The statement that returns rows of `source`.
    pub(super) fn present(&mut self, scope: &Scope<'a>, source: Source<'_>, reading: Reading) -> Result<String, WireError> {
        self.most = reading.most;
        let items = &self.query.select;
        let projection = self.project(scope, items, &[])?;
        let mut conditions = source.conditions;
        conditions.extend(self.inner_embeds(scope, items, &[])?);
        let filter = where_all(&conditions);
        let page = if reading.written { self.order(scope, &self.part(&[]).order, &[])? } else { self.page(scope, &[], reading.most)? };
        let Source { with, from, inserted, .. } = source;
        let rows = if reading.head_only { "''".to_owned() } else { joined(&projection.json) };
        let total = if reading.count { format!("(select pg_catalog.count(*) from {from} as t0{filter})") } else { NO_NUMBER.to_owned() };
        Ok(format!(
            "{with}select {rows}, pg_catalog.count(*), {total}, {inserted} from (select {} from {from} as t0{}{filter}{page}) as p0",
            projection.list, projection.joins
        ))
    }

    /// Order, limit and offset of the part under `path`.
    pub(super) fn page(&mut self, scope: &Scope<'a>, path: &[String], most: Option<u64>) -> Result<String, WireError> {
        let part = self.part(path);
        let mut sql = self.order(scope, &part.order, path)?;
        if let Some(limit) = part.limit.into_iter().chain(most).min() {
            sql.push_str(&format!(" limit {}", self.values.number(limit)));
        }
        if part.offset > 0 {
            sql.push_str(&format!(" offset {}", self.values.number(part.offset)));
        }
        Ok(sql)
    }
}

pub(super) const NO_NUMBER: &str = "null::pg_catalog.int8";

/// JSON values of several rows, joined by commas: an array without its brackets, and an object when there is one row.
pub(super) fn joined(json: &str) -> String {
    format!("coalesce(pg_catalog.string_agg(({json})::pg_catalog.text, ','), '')")
}
