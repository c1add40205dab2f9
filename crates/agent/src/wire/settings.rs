//! What one has to know to get there.

use std::fmt;
use std::path::PathBuf;

use gleaner::{Error, Result};

use super::sessions;

/// Where the server is, and by what right we come: a key of our own, else the session of whoever signed in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// `https://project.supabase.co`, `http://127.0.0.1:54321`.
    pub url: String,
    /// The project's public key. Not needed beside a key of our own.
    pub anon_key: String,
    /// The service key, or a worker's (`gleaner keys add`). Goes before a session.
    pub service_key: Option<String>,
    /// The file `gleaner agent login` wrote.
    pub session: Option<PathBuf>,
}

/// Keys are not for logs.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.service_key.as_ref().map(|_| "…");
        f.debug_struct("Settings").field("url", &self.url).field("service_key", &key).field("session", &self.session).finish()
    }
}

impl Settings {
    /// As the specifications' programs read them: `SUPABASE_URL`, `SUPABASE_ANON_KEY`, `SUPABASE_SERVICE_ROLE_KEY` or
    /// `SUPABASE_SERVICE_KEY`; and `GLEANER_KEY`, a worker's key, before those. What is missing is taken from the session in
    /// `home`, if somebody signed in there. None when nothing says where the server is.
    pub fn from_env(home: &std::path::Path) -> Result<Option<Self>> {
        Self::from_variables(home, |name| std::env::var(name).ok())
    }

    /// The same, from variables of the caller's.
    pub fn from_variables(home: &std::path::Path, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        // A variable set to nothing is how shells unset one.
        let first = |names: &[&str]| names.iter().find_map(|name| variable(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty()));
        let named = first(&["SUPABASE_URL"]);
        let kept = sessions::find(home, named.as_deref())?;
        let service_key = first(&["GLEANER_KEY", "SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SERVICE_KEY"]);
        let Some(url) = named.or_else(|| kept.as_ref().map(|kept| kept.session.url.clone())) else { return Ok(None) };
        let url = sessions::plain(&url).to_owned();
        let anon_key = first(&["SUPABASE_ANON_KEY"]).or_else(|| kept.as_ref().map(|kept| kept.session.anon_key.clone()));
        if anon_key.is_none() && service_key.is_none() {
            return Err(Error::Other(format!(
                "there is no key for {url}: set SUPABASE_ANON_KEY and run `gleaner agent login`, or set SUPABASE_SERVICE_ROLE_KEY or GLEANER_KEY"
            )));
        }
        Ok(Some(Self { url, anon_key: anon_key.unwrap_or_default(), service_key, session: kept.map(|kept| kept.path) }))
    }
}

/// `WORKER_ID`: what the worker calls itself, if it was told.
pub fn worker_id() -> Option<String> {
    std::env::var("WORKER_ID").ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())
}
