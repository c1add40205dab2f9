//! Filters as SQL.

use gleaner_http::WireError;

use super::{Compiler, Scope};
use crate::rest::catalogue::Type;
use crate::rest::query::{Comparison, Condition, Embed, Field, Is, Search, Test, find_embed};

impl<'a> Compiler<'a> {
    /// The conditions of the part under `path`, each by itself.
    pub(super) fn conditions(&mut self, scope: &Scope<'a>, path: &[String]) -> Result<Vec<String>, WireError> {
        self.part(path).conditions.iter().map(|condition| self.condition(scope, condition, path)).collect()
    }

    fn condition(&mut self, scope: &Scope<'a>, condition: &Condition, path: &[String]) -> Result<String, WireError> {
        Ok(match condition {
            Condition::All(members) => self.members(scope, members, " and ", path)?,
            Condition::Any(members) => self.members(scope, members, " or ", path)?,
            Condition::Not(inner) => format!("not {}", self.condition(scope, inner, path)?),
            Condition::Test(field, test) => {
                if let (Test::Is(is @ (Is::Null | Is::NotNull)), Some(embed)) = (test, self.embedded(field, path)) {
                    let exists = self.exists(scope, embed, path)?;
                    return Ok(if *is == Is::Null { format!("(not {exists})") } else { exists });
                }
                let field = self.field(scope, field)?;
                format!("({})", self.test(&field.sql, &field.kind, test))
            }
        })
    }

    /// The embedded resource of this name: `rel=is.null` asks whether it has rows.
    fn embedded(&self, field: &Field, path: &[String]) -> Option<&'a Embed> {
        if field.path.is_empty() { find_embed(self.items(path), &field.name).filter(|embed| embed.name() == field.name) } else { None }
    }

    fn members(&mut self, scope: &Scope<'a>, members: &[Condition], between: &str, path: &[String]) -> Result<String, WireError> {
        let members = members.iter().map(|member| self.condition(scope, member, path)).collect::<Result<Vec<_>, _>>()?;
        Ok(format!("({})", members.join(between)))
    }

    fn test(&mut self, field: &str, kind: &Type, test: &Test) -> String {
        match test {
            Test::Is(is) => format!("{field} is {}", is_word(*is)),
            Test::In(values) => self.is_in(field, kind, values),
            Test::Compare(comparison @ (Comparison::Like | Comparison::LikeInsensitive), pattern) => {
                // A percent sign is awkward in a URL, so an asterisk stands for it.
                let pattern = self.values.text(pattern.replace('*', "%"));
                format!("{field} {} {pattern}::pg_catalog.text", operator(*comparison))
            }
            Test::Compare(comparison @ (Comparison::Matches | Comparison::MatchesInsensitive), pattern) => {
                format!("{field} {} {}::pg_catalog.text", operator(*comparison), self.values.text(pattern))
            }
            Test::Each { comparison, all, values } => self.each(field, kind, *comparison, *all, values),
            Test::Search { search, language, words } => self.search(field, kind, *search, language.as_deref(), words),
            Test::Compare(comparison, value) => format!("{field} {} {}::{}", operator(*comparison), self.values.text(value), kind.sql),
        }
    }

    /// `like(any).{a*,b*}`: the values are an array, in PostgreSQL's notation.
    fn each(&mut self, field: &str, kind: &Type, comparison: Comparison, all: bool, values: &str) -> String {
        let (values, array) = match comparison {
            Comparison::Like | Comparison::LikeInsensitive => (values.replace('*', "%"), "pg_catalog._text"),
            Comparison::Matches | Comparison::MatchesInsensitive => (values.to_owned(), "pg_catalog._text"),
            // An array of arrays is of the type of the array.
            _ => (values.to_owned(), kind.array.as_deref().unwrap_or(&kind.sql)),
        };
        let each = if all { "all" } else { "any" };
        format!("{field} {} {each} ({}::{array})", operator(comparison), self.values.text(values))
    }

    /// Full text search, in the language of the request or that of the database.
    fn search(&mut self, field: &str, kind: &Type, search: Search, language: Option<&str>, words: &str) -> String {
        let reads = match search {
            Search::Query => "pg_catalog.to_tsquery",
            Search::Plain => "pg_catalog.plainto_tsquery",
            Search::Phrase => "pg_catalog.phraseto_tsquery",
            Search::Web => "pg_catalog.websearch_to_tsquery",
        };
        let language = language.map_or(String::new(), |language| format!("{}::pg_catalog.regconfig, ", self.values.text(language)));
        let vector =
            if kind.sql == "pg_catalog.tsvector" { field.to_owned() } else { format!("pg_catalog.to_tsvector({language}{field})") };
        format!("{vector} @@ {reads}({language}{})", self.values.text(words))
    }

    fn is_in(&mut self, field: &str, kind: &Type, values: &[String]) -> String {
        if let Some(array) = &kind.array {
            return format!("{field} = any ({}::{array})", self.values.list(values));
        }
        // There is no array type of an array.
        let values: Vec<_> = values.iter().map(|value| format!("{}::{}", self.values.text(value), kind.sql)).collect();
        if values.is_empty() { "false".to_owned() } else { format!("{field} in ({})", values.join(", ")) }
    }
}

fn is_word(is: Is) -> &'static str {
    match is {
        Is::Null => "null",
        Is::NotNull => "not null",
        Is::True => "true",
        Is::False => "false",
        Is::Unknown => "unknown",
    }
}

fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Like => "like",
        Comparison::LikeInsensitive => "ilike",
        Comparison::Matches => "~",
        Comparison::MatchesInsensitive => "~*",
        Comparison::Distinct => "is distinct from",
        Comparison::Contains => "@>",
        Comparison::ContainedIn => "<@",
        Comparison::Overlaps => "&&",
        Comparison::StrictlyLeft => "<<",
        Comparison::StrictlyRight => ">>",
        Comparison::NotRightOf => "&<",
        Comparison::NotLeftOf => "&>",
        Comparison::Adjacent => "-|-",
    }
}
