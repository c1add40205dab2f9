//! Parameters. All are sent as one array of texts, and each is cast in the statement to the type it is compared with, so that
//! PostgreSQL itself reports what is wrong with a malformed one.

use gleaner_http::WireError;
use http::StatusCode;

/// Far more than any request needs, and few enough to be planned.
const MOST: usize = 60_000;

/// A statement and its parameters, for `gleaner.run_request`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub sql: String,
    pub parameters: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Values(Vec<String>);

impl Values {
    /// The placeholder of a text.
    pub(super) fn text(&mut self, value: impl Into<String>) -> String {
        self.0.push(value.into());
        format!("($1)[{}]", self.0.len())
    }

    /// The placeholder of a list of texts.
    pub(super) fn list(&mut self, values: &[String]) -> String {
        format!("{}::pg_catalog.text[]", self.text(array(values)))
    }

    pub(super) fn number(&mut self, value: u64) -> String {
        format!("{}::pg_catalog.int8", self.text(value.to_string()))
    }

    pub(super) fn finish(self, sql: String) -> Result<Statement, WireError> {
        if self.0.len() > MOST {
            return Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST100", "the request has too many values"));
        }
        Ok(Statement { sql, parameters: self.0 })
    }
}

/// The list as PostgreSQL writes arrays, every element in quotes.
fn array(values: &[String]) -> String {
    let elements: Vec<_> = values.iter().map(|value| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    format!("{{{}}}", elements.join(","))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_list_is_written_as_an_array() {
        assert_eq!(super::array(&[]), "{}");
        assert_eq!(super::array(&["a,b".into(), "\"\\".into(), "NULL".into()]), r#"{"a,b","\"\\","NULL"}"#);
    }
}
