//! What an operator may set.

use std::time::Duration;

use crate::access::Role;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Schemas that can be reached; the first one without asking for it by profile.
    pub schemas: Vec<String>,
    /// Searched after the schema asked for, when functions of the database name something without its schema.
    pub extra_search_path: Vec<String>,
    pub anon: Limits,
    pub authenticated: Limits,
    pub service_role: Limits,
    /// Bytes of a body.
    pub max_body: usize,
    /// How long a request waits for a connection.
    pub acquire_within: Duration,
    /// Age at which what we know of the schema is read again.
    pub catalogue_live: Duration,
}

/// What one role may take at a time.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// None: as long as it takes.
    pub statement_timeout: Option<Duration>,
    /// Rows of one answer; what a write or a volatile function returns is never cut. None: no limit.
    pub max_rows: Option<u64>,
}

impl Settings {
    pub fn limits(&self, role: Role) -> Limits {
        match role {
            Role::Anon => self.anon,
            Role::Authenticated => self.authenticated,
            Role::Service => self.service_role,
        }
    }
}

impl Default for Settings {
    /// Time limits and rows as hosted Supabase has them, and a minute for the service key, which there has none.
    fn default() -> Self {
        let limits = |seconds| Limits { statement_timeout: Some(Duration::from_secs(seconds)), max_rows: Some(1000) };
        Self {
            schemas: vec!["public".to_owned(), "gleaner".to_owned()],
            extra_search_path: vec!["public".to_owned(), "extensions".to_owned()],
            anon: limits(3),
            authenticated: limits(8),
            service_role: limits(60),
            max_body: 10 << 20,
            acquire_within: Duration::from_secs(10),
            catalogue_live: Duration::from_secs(10),
        }
    }
}
