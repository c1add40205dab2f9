//! What is needed to connect to a server.

use std::fmt;
use std::path::PathBuf;

use gleaner::{Error, Result};

use super::sessions;

/// The server's URL and our credentials: a key of our own, otherwise the session of the signed-in user.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// `https://project.supabase.co`, `http://127.0.0.1:54321`.
    pub url: String,
    /// The project's public key. Not needed together with a key of our own.
    pub anon_key: String,
    /// The service key, or a worker's key (`gleaner keys add`). Takes precedence over a session.
    pub service_key: Option<String>,
    /// The file that `gleaner agent login` wrote.
    pub session: Option<PathBuf>,
}

/// Keys must not appear in logs.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.service_key.as_ref().map(|_| "…");
        f.debug_struct("Settings").field("url", &self.url).field("service_key", &key).field("session", &self.session).finish()
    }
}

impl Settings {
    /// Reads the variables that Supabase programs use: `SUPABASE_URL`, `SUPABASE_ANON_KEY`, `SUPABASE_SERVICE_ROLE_KEY` or
    /// `SUPABASE_SERVICE_KEY`. `GLEANER_KEY`, a worker's key, takes precedence over those. Missing values are taken from the
    /// session in `home`, if there is one. None when nothing names the server.
    pub fn from_env(home: &std::path::Path) -> Result<Option<Self>> {
        Self::from_variables(home, |name| std::env::var(name).ok())
    }

    /// Like [`Self::from_env`], with variables that the caller passes.
    pub fn from_variables(home: &std::path::Path, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        // Shells often unset a variable by setting it to the empty string.
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

/// `WORKER_ID`: the worker's name for itself, if it is set.
pub fn worker_id() -> Option<String> {
    std::env::var("WORKER_ID").ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())
}
