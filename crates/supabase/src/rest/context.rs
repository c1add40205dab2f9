//! The request context that is passed to the database, for the length of the transaction.

use std::time::Duration;

use gleaner_http::Role;
use uuid::Uuid;

#[derive(Debug)]
pub(super) struct Context {
    pub search_path: String,
    pub role: String,
    /// The user of the token, where it is a user's token.
    pub person: Option<Uuid>,
    /// All claims of the token, as JSON.
    pub claims: String,
    pub method: String,
    pub path: String,
    /// As JSON, names in lower case.
    pub headers: String,
    pub timezone: String,
    /// Zero means none.
    pub statement_timeout: Duration,
    pub read_only: bool,
}

impl Context {
    pub(super) fn is_anonymous(&self) -> bool {
        self.role == Role::Anon.name()
    }
}
