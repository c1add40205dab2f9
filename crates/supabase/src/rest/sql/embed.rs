//! Embedded resources: a subquery for each.

use gleaner_http::WireError;
use http::StatusCode;

use super::relationship::{self, Link, Relationship};
use super::{Compiler, Scope, where_all};
use crate::rest::query::{Embed, Field, Item, find_embed, not_embedded};

/// The related rows of a row, ready to be read.
#[derive(Debug)]
pub(super) struct Related<'s> {
    pub relationship: Relationship<'s>,
    pub scope: Scope<'s>,
    pub path: Vec<String>,
    pub from: String,
    /// Conditions of the relationship and of the client.
    pub conditions: Vec<String>,
}

impl<'a> Compiler<'a> {
    /// The name of an embedded resource and its value for a row of `scope`: an object or null, or an array.
    pub(super) fn embed(&mut self, scope: &Scope<'a>, embed: &Embed, path: &[String]) -> Result<(String, String), WireError> {
        let related = self.related(scope, embed, path)?;
        let projection = self.project(&related.scope, &embed.items, &related.path)?;
        let page = self.page(&related.scope, &related.path, self.most(&related))?;
        let rows = format!(
            "(select {} from {}{}{}{page}) as p{}",
            projection.list,
            related.from,
            projection.joins,
            where_all(&related.conditions),
            related.scope.level
        );
        let sql = if related.relationship.many {
            format!("(select coalesce(pg_catalog.json_agg({}), '[]') from {rows})", projection.json)
        } else {
            format!("(select {} from {rows})", projection.json)
        };
        Ok((related.relationship.name.to_owned(), sql))
    }

    /// The most related rows of one row. A view may show one row of a table more than once.
    pub(super) fn most(&self, related: &Related<'_>) -> Option<u64> {
        if related.relationship.many { self.most } else { Some(1) }
    }

    /// The conditions of `!inner`: that at least one embedded row passes the filters.
    pub(super) fn inner_embeds(&mut self, scope: &Scope<'a>, items: &[Item], path: &[String]) -> Result<Vec<String>, WireError> {
        let mut conditions = Vec::new();
        for item in items {
            if let Item::Embed(embed) = item
                && embed.inner
            {
                conditions.push(self.exists(scope, embed, path)?);
            }
        }
        Ok(conditions)
    }

    /// That at least one embedded row passes the filters.
    pub(super) fn exists(&mut self, scope: &Scope<'a>, embed: &Embed, path: &[String]) -> Result<String, WireError> {
        let related = self.related(scope, embed, path)?;
        Ok(format!("exists (select from {}{})", related.from, where_all(&related.conditions)))
    }

    /// A column of an embedded resource of which there is at most one, to order by it.
    pub(super) fn embedded_field(&mut self, scope: &Scope<'a>, name: &str, field: &Field, path: &[String]) -> Result<String, WireError> {
        let embed = find_embed(self.items(path), name).filter(|embed| embed.name() == name).ok_or_else(|| not_embedded(name))?;
        let related = self.related(scope, embed, path)?;
        if related.relationship.many {
            let message = format!("A related order on '{name}' is not possible");
            return Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST118", message)
                .details(format!("'{}' and '{name}' do not form a many-to-one or one-to-one relationship", scope.name)));
        }
        let value = self.field(&related.scope, field)?.sql;
        Ok(format!("(select {value} from {}{} limit 1)", related.from, where_all(&related.conditions)))
    }

    /// The columns of this scope that embedding needs; `None` if it needs the whole row.
    pub(super) fn joined_columns(&self, scope: &Scope<'a>, embed: &Embed) -> Result<Option<Vec<String>>, WireError> {
        let relationship = self.relationship(scope, embed)?;
        Ok(match &relationship.link {
            Link::Keys { pairs, .. } => Some(pairs.iter().map(|(here, _)| (*here).to_owned()).collect()),
            Link::Computed { .. } => None,
        })
    }

    pub(super) fn related(&mut self, scope: &Scope<'a>, embed: &Embed, path: &[String]) -> Result<Related<'a>, WireError> {
        let relationship = self.relationship(scope, embed)?;
        let inner = deeper(scope, &relationship)?;
        let path: Vec<String> = path.iter().cloned().chain([embed.name().to_owned()]).collect();
        let mut conditions = join(scope, &inner, &relationship)?;
        conditions.extend(self.conditions(&inner, &path)?);
        conditions.extend(self.inner_embeds(&inner, &embed.items, &path)?);
        let from = source(scope, &inner, &relationship);
        Ok(Related { relationship, scope: inner, path, from, conditions })
    }

    fn relationship(&self, scope: &Scope<'a>, embed: &Embed) -> Result<Relationship<'a>, WireError> {
        let Some(from) = scope.relation else {
            let message = format!("Could not find a relationship between '{}' and '{}' in the schema cache", scope.name, embed.target);
            return Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST200", message));
        };
        relationship::find(self.catalogue, from, embed)
    }
}

/// The most levels of embedding. Each multiplies the rows of a response.
const DEEPEST: usize = 8;

fn deeper<'a>(scope: &Scope<'_>, relationship: &Relationship<'a>) -> Result<Scope<'a>, WireError> {
    if scope.level >= DEEPEST {
        let message = format!("resources are embedded at most {DEEPEST} levels deep");
        return Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST100", message));
    }
    Ok(Scope { level: scope.level + 1, ..Scope::of(relationship.target) })
}

/// The source of the embedded rows: the other table, and the junction table if there is one; or a function of the row.
fn source(scope: &Scope<'_>, inner: &Scope<'_>, relationship: &Relationship<'_>) -> String {
    let target = format!("{} as {}", relationship.target.sql, inner.alias());
    match &relationship.link {
        Link::Keys { junction: Some(junction), .. } => format!("{target} cross join {} as {}", junction.relation.sql, between(inner)),
        Link::Keys { junction: None, .. } => target,
        Link::Computed { function, .. } => format!("{}({}) as {}", function.sql, scope.row(), inner.alias()),
    }
}

fn join(scope: &Scope<'_>, inner: &Scope<'_>, relationship: &Relationship<'_>) -> Result<Vec<String>, WireError> {
    let (pairs, junction) = match &relationship.link {
        Link::Keys { pairs, junction, .. } => (pairs, junction),
        // A function that returns no set returns a row of nulls for none.
        Link::Computed { set: false, .. } => return Ok(vec![format!("not ({}.* is null)", inner.alias())]),
        Link::Computed { .. } => return Ok(Vec::new()),
    };
    let (near, alias) = match junction {
        Some(junction) => (Scope::of(junction.relation), between(inner)),
        None => (*inner, inner.alias()),
    };
    let mut equal = Vec::new();
    for (here, there) in pairs {
        equal.push(format!("{alias}.{} = {}.{}", near.column(there)?.sql, scope.alias(), scope.column(here)?.sql));
    }
    for (here, there) in junction.iter().flat_map(|junction| &junction.pairs) {
        equal.push(format!("{}.{} = {alias}.{}", inner.alias(), inner.column(there)?.sql, near.column(here)?.sql));
    }
    Ok(equal)
}

/// The rows of a junction in SQL.
fn between(inner: &Scope<'_>) -> String {
    format!("j{}", inner.level)
}
