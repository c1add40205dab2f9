//! Filters as SQL.

use gleaner_http::WireError;

use super::{Compiler, Scope};
use crate::rest::catalogue::Type;
use crate::rest::query::{Comparison, Condition, Is, Test};

impl Compiler<'_> {
    /// The conditions of the part under `path`, each by itself.
    pub(super) fn conditions(&mut self, scope: &Scope<'_>, path: &[String]) -> Result<Vec<String>, WireError> {
        self.part(path).conditions.iter().map(|condition| self.condition(scope, condition)).collect()
    }

    fn condition(&mut self, scope: &Scope<'_>, condition: &Condition) -> Result<String, WireError> {
        Ok(match condition {
            Condition::All(members) => self.members(scope, members, " and ")?,
            Condition::Any(members) => self.members(scope, members, " or ")?,
            Condition::Not(inner) => format!("not {}", self.condition(scope, inner)?),
            Condition::Test(field, test) => {
                let field = self.field(scope, field)?;
                format!("({})", self.test(&field.sql, &field.kind, test))
            }
        })
    }

    fn members(&mut self, scope: &Scope<'_>, members: &[Condition], between: &str) -> Result<String, WireError> {
        let members = members.iter().map(|member| self.condition(scope, member)).collect::<Result<Vec<_>, _>>()?;
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
            Test::Compare(comparison, value) => format!("{field} {} {}::{}", operator(*comparison), self.values.text(value), kind.sql),
        }
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
