//! Calling functions.

use gleaner_http::WireError;

use super::read::{NO_NUMBER, Reading, Source, joined};
use super::{Compiler, Scope, Statement};
use crate::rest::catalogue::{Argument, Catalogue, Function, Returns};

/// Arguments by name.
#[derive(Debug)]
pub(crate) enum Arguments {
    /// A JSON object, and its keys.
    Json { text: String, names: Vec<String> },
    /// From the query string, each a literal.
    Literals(Vec<(String, String)>),
    /// The body as a whole, for a function whose only argument has no name.
    Whole(String),
}

impl Arguments {
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Json { names, .. } => names.iter().map(String::as_str).collect(),
            Self::Literals(pairs) => pairs.iter().map(|(name, _)| name.as_str()).collect(),
            Self::Whole(_) => Vec::new(),
        }
    }
}

impl<'a> Compiler<'a> {
    /// Calls a function. It runs once, whatever is requested of its rows.
    pub(crate) fn call(mut self, function: &'a Function, arguments: Arguments, reading: Reading) -> Result<Statement, WireError> {
        let (before, given) = self.arguments(function, arguments);
        let call = format!("{}({given})", function.sql);
        let sql = match &function.returns {
            Returns::Nothing | Returns::Value => {
                let from = before.map_or(String::new(), |before| format!(" from {before}"));
                let rows = if reading.head_only || matches!(function.returns, Returns::Nothing) {
                    "''".to_owned()
                } else {
                    joined("coalesce(pg_catalog.to_json(called.value)::pg_catalog.text, 'null')")
                };
                let total = if reading.count { "pg_catalog.count(*)" } else { NO_NUMBER };
                format!(
                    "with called as materialized (select {call} as value{from}) select {rows}, pg_catalog.count(*), {total}, {NO_NUMBER} from called"
                )
            }
            Returns::Rows { columns, relation } => {
                let before = before.map_or(String::new(), |before| format!("{before}, lateral "));
                // A composite that is null has no columns to show.
                let present = if relation.is_some() && !function.many { " where not (t0.* is null)" } else { "" };
                let with = format!("with called as materialized (select t0.* from {before}{call} as t0{present}) ");
                let catalogue: &'a Catalogue = self.catalogue;
                let relation = relation.as_ref().and_then(|name| catalogue.relation(&name.schema, &name.name));
                let scope =
                    Scope { name: &function.name, columns, relation: relation.map(|relation| &**relation), level: 0, direct: false };
                let conditions = self.conditions(&scope, &[])?;
                self.present(&scope, Source { with: &with, from: "called", conditions, inserted: NO_NUMBER }, reading)?
            }
        };
        self.finish(sql)
    }

    /// The source of the arguments, and the list that passes them by name.
    fn arguments(&mut self, function: &Function, arguments: Arguments) -> (Option<String>, String) {
        match arguments {
            Arguments::Json { text, names } => {
                let given: Vec<_> = function.arguments.iter().filter(|argument| names.contains(&argument.name)).collect();
                if given.is_empty() {
                    return (None, String::new());
                }
                let definition: Vec<_> = given.iter().map(|argument| format!("{} {}", argument.sql, argument.kind.sql)).collect();
                let place = self.values.text(text);
                let from = format!("pg_catalog.json_to_record({place}::pg_catalog.json) as given({})", definition.join(", "));
                let passed: Vec<_> = given.iter().map(|argument| pass(argument, &format!("given.{}", argument.sql))).collect();
                (Some(from), passed.join(", "))
            }
            Arguments::Whole(text) => {
                let kind = function.arguments.first().map_or("pg_catalog.text", |argument| &argument.kind.sql);
                (None, format!("{}::{kind}", self.values.text(text)))
            }
            Arguments::Literals(pairs) => {
                let passed: Vec<_> = function.arguments.iter().filter_map(|argument| self.literal(argument, &pairs)).collect();
                (None, passed.join(", "))
            }
        }
    }

    /// One argument from the query string. If repeated, it is a list for a variadic argument, and otherwise the last one counts.
    fn literal(&mut self, argument: &Argument, pairs: &[(String, String)]) -> Option<String> {
        let mut given: Vec<_> =
            pairs.iter().filter(|(name, _)| !name.is_empty() && *name == argument.name).map(|(_, value)| value.clone()).collect();
        // Several, or one that is no array.
        let is_list = given.len() > 1 || given.iter().any(|value| !value.starts_with('{'));
        let place =
            if argument.variadic && !given.is_empty() && is_list { self.values.list(&given) } else { self.values.text(given.pop()?) };
        Some(pass(argument, &format!("{place}::{}", argument.kind.sql)))
    }
}

fn pass(argument: &Argument, value: &str) -> String {
    let variadic = if argument.variadic { "variadic " } else { "" };
    format!("{variadic}{} => {value}", argument.sql)
}
