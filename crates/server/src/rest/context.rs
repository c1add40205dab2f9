//! What the database is told about a request, for the length of its transaction.

use uuid::Uuid;

use crate::access::Role;

#[derive(Debug)]
pub struct Context {
    pub search_path: String,
    pub role: String,
    /// Whose token it is, where it is a person's.
    pub person: Option<Uuid>,
    /// All claims of the token, as JSON.
    pub claims: String,
    pub method: String,
    pub path: String,
    /// As JSON, names in lower case.
    pub headers: String,
    /// In milliseconds; zero means none.
    pub statement_timeout: String,
    pub read_only: bool,
}

impl Context {
    pub fn is_anonymous(&self) -> bool {
        self.role == Role::Anon.name()
    }
}
