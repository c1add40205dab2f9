//! Which key and which token a call carries, and when the token is renewed.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gleaner::{Error, Result};
use tokio::sync::Mutex;

use super::session::{self, Session};
use super::settings::Settings;

/// The token is renewed this long before it expires, because a call may take a while. Supabase's own clients do the same.
const BEFORE_THE_END: i64 = 90;

pub(super) struct Credentials {
    key: String,
    holder: Holder,
}

enum Holder {
    /// The key alone authenticates us.
    Key,
    Person(Box<Person>),
}

struct Person {
    client: reqwest::Client,
    path: PathBuf,
    url: String,
    held: Mutex<Option<Held>>,
    /// A refresh token that was permanently refused. Trying it again would only produce noise.
    refused: std::sync::Mutex<Option<String>>,
}

#[derive(Clone)]
struct Held {
    session: Session,
    /// When to renew it. If we renewed it ourselves, only our own clock counts.
    until: Instant,
}

/// Keys and tokens must not appear in logs.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_renewable() { "Credentials(session)" } else { "Credentials(key)" })
    }
}

impl Credentials {
    pub(super) fn new(client: reqwest::Client, url: &str, settings: Settings) -> Result<Self> {
        let present = |key: Option<String>| key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        if let Some(key) = present(settings.service_key) {
            return Ok(Self { key, holder: Holder::Key });
        }
        let Some(key) = present(Some(settings.anon_key)) else {
            return Err(Error::Other(format!(
                "there is no key for {url}; set SUPABASE_ANON_KEY, or SUPABASE_SERVICE_ROLE_KEY or GLEANER_KEY"
            )));
        };
        let holder = match settings.session {
            Some(path) => Holder::Person(Box::new(Person {
                client,
                path,
                url: url.to_owned(),
                held: Mutex::default(),
                refused: std::sync::Mutex::default(),
            })),
            None => Holder::Key,
        };
        Ok(Self { key, holder })
    }

    /// The project key, for the `apikey` header.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Whether a refused token can be replaced by a new one.
    pub(super) fn is_renewable(&self) -> bool {
        matches!(self.holder, Holder::Person(_))
    }

    /// The token for the next call.
    pub(super) async fn token(&self) -> Result<String> {
        match &self.holder {
            Holder::Key => Ok(self.key.clone()),
            Holder::Person(person) => Ok(person.session(None).await?.access_token),
        }
    }

    /// Replaces this token, which was refused.
    pub(super) async fn renew(&self, refused: &str) -> Result<()> {
        match &self.holder {
            Holder::Key => Ok(()),
            Holder::Person(person) => person.session(Some(refused)).await.map(drop),
        }
    }

    /// When the token will change. None if it never does.
    pub(super) async fn renew_at(&self) -> Option<Instant> {
        match &self.holder {
            Holder::Key => None,
            Holder::Person(person) => person.held.lock().await.as_ref().map(|held| held.until),
        }
    }

    /// The session of the signed-in user.
    pub(super) async fn session(&self) -> Result<Option<Session>> {
        match &self.holder {
            Holder::Key => Ok(None),
            Holder::Person(person) => person.session(None).await.map(Some),
        }
    }
}

impl Person {
    /// A session whose token is valid for a while and is not the refused one.
    async fn session(&self, refused: Option<&str>) -> Result<Session> {
        // One task renews. The others wait here and find the token renewed.
        let mut held = self.held.lock().await;
        let is_good = |held: &Held| held.until > Instant::now() && refused != Some(held.session.access_token.as_str());
        if let Some(held) = held.as_ref().filter(|held| is_good(held)) {
            return Ok(held.session.clone());
        }
        // Another process that shares the file may have renewed it already.
        let kept = Held::of(self.load()?);
        if is_good(&kept) {
            return Ok(held.insert(kept).session.clone());
        }
        let _lock = session::lock(&self.path).await?;
        let kept = Held::of(self.load()?);
        if is_good(&kept) {
            return Ok(held.insert(kept).session.clone());
        }
        if *self.refused.lock().expect("no panic holds it") == Some(kept.session.refresh_token.clone()) {
            return Err(Error::Other(format!("the session at {} has ended; run `gleaner agent login`", self.url)));
        }
        match session::refresh(&self.client, &kept.session).await {
            Ok(renewed) => {
                session::save(&self.path, &renewed)?;
                tracing::debug!("the session was renewed");
                Ok(held.insert(Held::of(renewed)).session.clone())
            }
            // The renewal is early: the current token is still valid for a moment, and the next call tries again.
            Err(error) if error.is_transient() && refused.is_none() && kept.session.expires_at > session::now() => {
                tracing::debug!(%error, "the session could not be renewed yet");
                Ok(kept.session)
            }
            Err(error) => {
                if !error.is_transient() {
                    *self.refused.lock().expect("no panic holds it") = Some(kept.session.refresh_token);
                }
                Err(error)
            }
        }
    }

    fn load(&self) -> Result<Session> {
        let Some(session) = session::load(&self.path)? else {
            return Err(Error::Other(format!("not signed in to {}; run `gleaner agent login --url {}`", self.url, self.url)));
        };
        if session.url != self.url {
            return Err(Error::Other(format!(
                "the session in {} is for {}, not for {}; run `gleaner agent login --url {}`",
                self.path.display(),
                session.url,
                self.url,
                self.url
            )));
        }
        Ok(session)
    }
}

impl Held {
    fn of(session: Session) -> Self {
        let lasts = session.expires_at - session::now();
        // Of a short lifetime only the last part is given up, and always some: expiry is known in whole seconds only.
        let early = BEFORE_THE_END.min((lasts + 3) / 4);
        let until = Instant::now() + Duration::from_secs(u64::try_from(lasts - early).unwrap_or(0));
        Self { session, until }
    }
}
