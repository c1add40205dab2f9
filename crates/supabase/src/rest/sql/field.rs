//! Columns and paths into their JSON, as expressions.

use gleaner_http::WireError;

use super::{Compiler, Scope};
use crate::rest::catalogue::Type;
use crate::rest::query::{Field, Key, Order};

/// An expression and the type that values compared with it must have.
#[derive(Debug)]
pub(super) struct Typed {
    pub sql: String,
    pub kind: Type,
}

impl<'a> Compiler<'a> {
    pub(super) fn field(&mut self, scope: &Scope<'_>, field: &Field) -> Result<Typed, WireError> {
        let own = scope.value(&field.name)?;
        let Some(last) = field.path.last() else { return Ok(own) };
        let kind = if last.text { Type::text() } else { Type::jsonb() };
        // Anything that is not jsonb is converted, so that paths work on json, arrays and composites too.
        // The text of json is as it was written; a value of it can be compared only as jsonb.
        let as_it_is = own.kind.sql == "pg_catalog.jsonb" || (own.kind.sql == "pg_catalog.json" && last.text);
        let mut sql = if as_it_is { own.sql } else { format!("pg_catalog.to_jsonb({})", own.sql) };
        for step in &field.path {
            let arrow = if step.text { "->>" } else { "->" };
            let key = match &step.key {
                Key::Name(name) => format!("{}::pg_catalog.text", self.values.text(name)),
                Key::Index(index) => format!("{}::pg_catalog.int4", self.values.text(index.to_string())),
            };
            sql = format!("({sql} {arrow} {key})");
        }
        Ok(Typed { sql, kind })
    }

    /// ` order by …`, or nothing.
    pub(super) fn order(&mut self, scope: &Scope<'a>, terms: &[Order], path: &[String]) -> Result<String, WireError> {
        let mut rendered = Vec::with_capacity(terms.len());
        for term in terms {
            let field = match &term.embed {
                Some(embed) => self.embedded_field(scope, embed, &term.field, path)?,
                None => self.field(scope, &term.field)?.sql,
            };
            let direction = if term.descending { " desc" } else { "" };
            let nulls = match term.nulls_first {
                Some(true) => " nulls first",
                Some(false) => " nulls last",
                None => "",
            };
            rendered.push(format!("{field}{direction}{nulls}"));
        }
        Ok(if rendered.is_empty() { String::new() } else { format!(" order by {}", rendered.join(", ")) })
    }
}
