//! Embedded resources: a subquery for each.

use gleaner_http::WireError;
use http::StatusCode;

use super::relationship::{self, Relationship};
use super::{Compiler, Scope, where_all};
use crate::rest::query::{Embed, Item};

impl Compiler<'_> {
    /// The name of an embedded resource and its value for a row of `scope`: an object or null, or an array.
    pub(super) fn embed(&mut self, scope: &Scope<'_>, embed: &Embed, path: &[String]) -> Result<(String, String), WireError> {
        let relationship = self.relationship(scope, embed)?;
        let inner = deeper(scope, &relationship)?;
        let path = below(path, embed);
        let projection = self.project(&inner, &embed.items, &path)?;
        let mut conditions = join(scope, &inner, &relationship)?;
        conditions.extend(self.conditions(&inner, &path)?);
        conditions.extend(self.inner_embeds(&inner, &embed.items, &path)?);
        // A view may show one row of a table more than once.
        let most = if relationship.many { self.most } else { relationship.target.view.then_some(1) };
        let page = self.page(&inner, &path, most)?;
        let from = source(&inner, &relationship);
        let rows = format!("(select {} from {from}{}{page}) as p{}", projection.list, where_all(&conditions), inner.level);
        let sql = if relationship.many {
            format!("(select coalesce(pg_catalog.json_agg({}), '[]') from {rows})", projection.json)
        } else {
            format!("(select {} from {rows})", projection.json)
        };
        Ok((relationship.name.to_owned(), sql))
    }

    /// The conditions of `!inner`: that at least one embedded row passes the filters.
    pub(super) fn inner_embeds(&mut self, scope: &Scope<'_>, items: &[Item], path: &[String]) -> Result<Vec<String>, WireError> {
        let mut conditions = Vec::new();
        for item in items {
            let Item::Embed(embed) = item else { continue };
            if !embed.inner {
                continue;
            }
            let relationship = self.relationship(scope, embed)?;
            let inner = deeper(scope, &relationship)?;
            let path = below(path, embed);
            let mut matching = join(scope, &inner, &relationship)?;
            matching.extend(self.conditions(&inner, &path)?);
            matching.extend(self.inner_embeds(&inner, &embed.items, &path)?);
            conditions.push(format!("exists (select from {}{})", source(&inner, &relationship), where_all(&matching)));
        }
        Ok(conditions)
    }

    /// The columns of this scope that embedding needs.
    pub(super) fn joined_columns(&self, scope: &Scope<'_>, embed: &Embed) -> Result<Vec<String>, WireError> {
        let relationship = self.relationship(scope, embed)?;
        Ok(relationship.pairs.iter().map(|(here, _)| (*here).to_owned()).collect())
    }

    fn relationship<'s>(&self, scope: &Scope<'s>, embed: &Embed) -> Result<Relationship<'s>, WireError>
    where
        Self: 's,
    {
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

/// The source of the embedded rows: the other table, and the junction table if there is one.
fn source(inner: &Scope<'_>, relationship: &Relationship<'_>) -> String {
    let target = format!("{} as {}", relationship.target.sql, inner.alias());
    match &relationship.junction {
        Some(junction) => format!("{target}, {} as {}", junction.relation.sql, between(inner)),
        None => target,
    }
}

fn join(scope: &Scope<'_>, inner: &Scope<'_>, relationship: &Relationship<'_>) -> Result<Vec<String>, WireError> {
    let (near, alias) = match &relationship.junction {
        Some(junction) => (Scope::of(junction.relation), between(inner)),
        None => (*inner, inner.alias()),
    };
    let mut equal = Vec::new();
    for (here, there) in &relationship.pairs {
        equal.push(format!("{alias}.{} = {}.{}", near.column(there)?.sql, scope.alias(), scope.column(here)?.sql));
    }
    for (here, there) in relationship.junction.iter().flat_map(|junction| &junction.pairs) {
        equal.push(format!("{}.{} = {alias}.{}", inner.alias(), inner.column(there)?.sql, near.column(here)?.sql));
    }
    Ok(equal)
}

/// The rows of a junction in SQL.
fn between(inner: &Scope<'_>) -> String {
    format!("j{}", inner.level)
}

fn below(path: &[String], embed: &Embed) -> Vec<String> {
    let name = embed.alias.as_ref().unwrap_or(&embed.target);
    path.iter().chain([name]).cloned().collect()
}
