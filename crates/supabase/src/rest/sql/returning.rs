//! What a write returns.

use std::collections::BTreeSet;

use gleaner_http::WireError;

use super::read::{NO_NUMBER, Reading, Source};
use super::{Compiler, Scope, Statement};
use crate::rest::catalogue::Relation;
use crate::rest::query::Item;

impl<'a> Compiler<'a> {
    /// Completes a write up to `returning`. Written rows are returned only on request, because that needs the right to read them.
    pub(super) fn write(
        mut self,
        relation: &'a Relation,
        write: &str,
        show: bool,
        count: bool,
        inserted: &str,
    ) -> Result<Statement, WireError> {
        let scope = Scope { direct: false, ..Scope::of(relation) };
        let returning = if show { self.returning(&scope)? } else { "1 as one".to_owned() };
        let with = format!("with written as ({write} returning {returning}) ");
        let sql = if show {
            let source = Source { with: &with, from: "written", conditions: Vec::new(), inserted };
            self.present(&scope, source, Reading { count, written: true, ..Reading::default() })?
        } else {
            let total = if count { "pg_catalog.count(*)" } else { NO_NUMBER };
            format!("{with}select '', pg_catalog.count(*), {total}, {inserted} from written")
        };
        self.finish(sql)
    }

    /// The columns that the select list, embedding and order need, and no others, because rights may differ by column.
    fn returning(&self, scope: &Scope<'a>) -> Result<String, WireError> {
        let mut needed = BTreeSet::new();
        for item in &self.query.select {
            match item {
                Item::All => return Ok("t0.*".to_owned()),
                Item::Column { field, .. } if scope.counts(field) => {}
                Item::Column { field, .. } => drop(needed.insert(field.name.clone())),
                Item::Embed(embed) => match self.joined_columns(scope, embed)? {
                    Some(columns) => needed.extend(columns),
                    None => return Ok("t0.*".to_owned()),
                },
            }
        }
        let order = self.part(&[]).order.iter().filter(|term| term.embed.is_none());
        needed.extend(order.map(|term| term.field.name.clone()));
        // Functions of the row need all of it.
        if needed
            .iter()
            .any(|name| scope.relation.is_some_and(|relation| relation.column(name).is_none()) && scope.computed(name).is_some())
        {
            return Ok("t0.*".to_owned());
        }
        let columns = needed.iter().map(|name| Ok(format!("t0.{}", scope.column(name)?.sql))).collect::<Result<Vec<_>, WireError>>()?;
        Ok(if columns.is_empty() { "1 as one".to_owned() } else { columns.join(", ") })
    }
}
