//! Embedded resources: a subquery for each.

use http::StatusCode;

use super::relationship::{self, Relationship};
use super::{Compiler, Scope, where_all};
use crate::rest::query::{Embed, Item};
use crate::wire_error::WireError;

impl Compiler<'_> {
    /// The name of an embedded resource and its value for a row of `scope`: an object or null, or an array.
    pub(super) fn embed(&mut self, scope: &Scope<'_>, embed: &Embed, path: &[String]) -> Result<(String, String), WireError> {
        let relationship = self.relationship(scope, embed)?;
        let inner = Scope { level: scope.level + 1, ..Scope::of(relationship.target) };
        let path = below(path, embed);
        let projection = self.project(&inner, &embed.items, &path)?;
        let mut conditions = join(scope, &inner, &relationship)?;
        conditions.extend(self.conditions(&inner, &path)?);
        conditions.extend(self.inner_embeds(&inner, &embed.items, &path)?);
        let page = self.page(&inner, &path, None)?;
        let (from, alias) = (&relationship.target.sql, inner.alias());
        let rows = format!("(select {} from {from} as {alias}{}{page}) as p{}", projection.list, where_all(&conditions), inner.level);
        let sql = if relationship.many {
            format!("(select coalesce(pg_catalog.json_agg({}), '[]') from {rows})", projection.json)
        } else {
            format!("(select {} from {rows})", projection.json)
        };
        Ok((relationship.name.to_owned(), sql))
    }

    /// What `!inner` asks of a row: that the embedded rows, filtered, are not none.
    pub(super) fn inner_embeds(&mut self, scope: &Scope<'_>, items: &[Item], path: &[String]) -> Result<Vec<String>, WireError> {
        let mut conditions = Vec::new();
        for item in items {
            let Item::Embed(embed) = item else { continue };
            if !embed.inner {
                continue;
            }
            let relationship = self.relationship(scope, embed)?;
            let inner = Scope { level: scope.level + 1, ..Scope::of(relationship.target) };
            let path = below(path, embed);
            let mut matching = join(scope, &inner, &relationship)?;
            matching.extend(self.conditions(&inner, &path)?);
            matching.extend(self.inner_embeds(&inner, &embed.items, &path)?);
            conditions.push(format!("exists (select from {} as {}{})", relationship.target.sql, inner.alias(), where_all(&matching)));
        }
        Ok(conditions)
    }

    /// Columns here that embedding needs.
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

fn join(scope: &Scope<'_>, inner: &Scope<'_>, relationship: &Relationship<'_>) -> Result<Vec<String>, WireError> {
    let equal = |(here, there): &(&str, &str)| {
        Ok(format!("{}.{} = {}.{}", inner.alias(), inner.column(there)?.sql, scope.alias(), scope.column(here)?.sql))
    };
    relationship.pairs.iter().map(equal).collect()
}

fn below(path: &[String], embed: &Embed) -> Vec<String> {
    let name = embed.alias.as_ref().unwrap_or(&embed.target);
    path.iter().chain([name]).cloned().collect()
}
