//! Parameters. All are sent as text and cast in the statement to the type they are compared with, so that PostgreSQL itself reports
//! what is wrong with a malformed one.

use gleaner_http::WireError;
use http::StatusCode;

/// The protocol counts parameters in 16 bits.
const MOST: usize = 60_000;

/// A statement and its parameters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub sql: String,
    pub parameters: Vec<Parameter>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    Text(String),
    List(Vec<String>),
}

#[derive(Debug, Default)]
pub(super) struct Values(Vec<Parameter>);

impl Values {
    /// The placeholder of a text.
    pub(super) fn text(&mut self, value: impl Into<String>) -> String {
        self.add(Parameter::Text(value.into()))
    }

    /// The placeholder of a list of texts.
    pub(super) fn list(&mut self, values: Vec<String>) -> String {
        self.add(Parameter::List(values))
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

    fn add(&mut self, parameter: Parameter) -> String {
        self.0.push(parameter);
        format!("${}", self.0.len())
    }
}
