//! `...rel(a,b)`: columns of a related row become columns of the row itself. Where several rows may be related, each column is the
//! list of its values.

use gleaner_http::WireError;

use super::project::{Entry, expanded};
use super::{Compiler, Scope, where_all};
use crate::rest::query::Embed;

impl<'a> Compiler<'a> {
    /// Joins the related rows to the source of the rows of `scope`. Returns their columns, under the names they have there.
    pub(super) fn spread(
        &mut self,
        scope: &Scope<'a>,
        embed: &Embed,
        path: &[String],
        joins: &mut String,
    ) -> Result<Vec<Entry>, WireError> {
        let related = self.related(scope, embed, path)?;
        let mut inner_joins = String::new();
        let entries = self.entries(&related.scope, &embed.items, &related.path, &mut inner_joins)?;
        let columns = expanded(&related.scope, entries);
        let page = self.page(&related.scope, &related.path, self.most(&related))?;
        self.spreads += 1;
        let spread = format!("s{}", self.spreads);
        let list: Vec<_> = columns.iter().enumerate().map(|(at, (_, sql))| format!("{sql} as c{at}")).collect();
        let rows = format!("select {} from {}{inner_joins}{}{page}", list.join(", "), related.from, where_all(&related.conditions));
        let rows = if related.relationship.many {
            let lists: Vec<_> = (0..columns.len()).map(|at| format!("coalesce(pg_catalog.json_agg(r.c{at}), '[]') as c{at}")).collect();
            format!("select {} from ({rows}) as r", lists.join(", "))
        } else {
            rows
        };
        joins.push_str(&format!(" left join lateral ({rows}) as {spread} on true"));
        let named = columns.into_iter().enumerate().map(|(at, (name, _))| Entry::Value { name, sql: format!("{spread}.c{at}") });
        Ok(named.collect())
    }
}
