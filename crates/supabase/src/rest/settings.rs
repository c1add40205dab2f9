//! The settings of an operator.

use std::time::Duration;

use gleaner_http::Role;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The exposed schemas. The first is used when a request names no profile.
    pub schemas: Vec<String>,
    /// Searched after the requested schema, when functions of the database use a name without its schema.
    pub extra_search_path: Vec<String>,
    pub anon: Limits,
    pub authenticated: Limits,
    pub service_role: Limits,
    /// The largest body in bytes.
    pub max_body: usize,
    /// The memory for the bodies of all requests together, in bytes.
    pub body_memory: usize,
    /// How long a body may take to arrive.
    pub body_within: Duration,
    /// How long a request waits for a connection.
    pub acquire_within: Duration,
    /// The age at which the catalogue is read again.
    pub catalogue_live: Duration,
}

/// The limits of one role.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// `None`: no limit.
    pub statement_timeout: Option<Duration>,
    /// The most rows of one response. What a write or a volatile function returns is never cut. `None`: no limit.
    pub max_rows: Option<u64>,
}

impl Settings {
    /// The defaults, changed by `GLEANER_REST_SCHEMAS` (further schemas, separated by commas), `GLEANER_REST_MAX_ROWS`,
    /// `GLEANER_REST_MAX_BODY` (bytes), and `GLEANER_REST_TIMEOUT_ANON`, `…_AUTHENTICATED` and `…_SERVICE` (milliseconds). Zero
    /// rows or milliseconds mean no limit. The error names the variable that is invalid.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str| match variable(name).filter(|text| !text.trim().is_empty()) {
            Some(text) => text.trim().parse::<u64>().map(Some).map_err(|_| format!("{name} is not a whole number: {text}")),
            None => Ok(None),
        };
        let mut settings = Self::default();
        for schema in variable("GLEANER_REST_SCHEMAS").unwrap_or_default().split(',').map(str::trim) {
            if !schema.is_empty() && !settings.schemas.iter().any(|known| known == schema) {
                settings.schemas.push(schema.to_owned());
            }
        }
        if let Some(bytes) = number("GLEANER_REST_MAX_BODY")? {
            settings.max_body = usize::try_from(bytes).map_err(|_| "GLEANER_REST_MAX_BODY is larger than memory".to_owned())?;
        }
        let rows = number("GLEANER_REST_MAX_ROWS")?;
        let roles = [("ANON", &mut settings.anon), ("AUTHENTICATED", &mut settings.authenticated), ("SERVICE", &mut settings.service_role)];
        for (role, limits) in roles {
            if let Some(milliseconds) = number(&format!("GLEANER_REST_TIMEOUT_{role}"))? {
                limits.statement_timeout = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
            }
            if let Some(rows) = rows {
                limits.max_rows = (rows > 0).then_some(rows);
            }
        }
        Ok(settings)
    }

    pub fn limits(&self, role: Role) -> Limits {
        match role {
            Role::Anon => self.anon,
            Role::Authenticated => self.authenticated,
            Role::Service => self.service_role,
        }
    }
}

impl Default for Settings {
    /// Time and row limits as on hosted Supabase, and a minute for the service key, which has no limit there.
    fn default() -> Self {
        let limits = |seconds| Limits { statement_timeout: Some(Duration::from_secs(seconds)), max_rows: Some(1000) };
        Self {
            schemas: vec!["public".to_owned(), "gleaner".to_owned()],
            extra_search_path: vec!["public".to_owned(), "extensions".to_owned()],
            anon: limits(3),
            authenticated: limits(8),
            service_role: limits(60),
            max_body: 10 << 20,
            body_memory: 128 << 20,
            body_within: Duration::from_secs(30),
            acquire_within: Duration::from_secs(10),
            catalogue_live: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Settings;

    fn from(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::from_variables(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn variables_change_what_they_name() {
        let settings = from(&[
            ("GLEANER_REST_SCHEMAS", "crm, public"),
            ("GLEANER_REST_MAX_ROWS", "0"),
            ("GLEANER_REST_TIMEOUT_ANON", "250"),
            ("GLEANER_REST_TIMEOUT_SERVICE", "0"),
        ])
        .unwrap();
        assert_eq!(settings.schemas, ["public", "gleaner", "crm"]);
        assert_eq!((settings.anon.max_rows, settings.anon.statement_timeout), (None, Some(Duration::from_millis(250))));
        assert_eq!(settings.service_role.statement_timeout, None);
        assert_eq!(settings.authenticated.statement_timeout, Settings::default().authenticated.statement_timeout);
    }

    #[test]
    fn a_variable_that_cannot_be_read_is_named() {
        assert!(from(&[("GLEANER_REST_MAX_ROWS", "many")]).unwrap_err().contains("GLEANER_REST_MAX_ROWS"));
    }
}
