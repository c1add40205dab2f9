//! Starting and stopping the work for an app, from consent to revocation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use gleaner::worker::Mishap;
use serde::Serialize;
use serde_json::Value;

use super::app::{App, Entry};
use super::asked::{Place, Proposal};
use super::store::Consent;
use super::{Error, Host, locked};

/// The timeout for reaching a place.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Why an app cannot be served. The page shows it to the user.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// Does the work for apps: runs workers at the place of each, by the name of the app.
#[async_trait]
pub trait Serve: Send + Sync + 'static {
    /// Starts to serve the app. If an app of that name is already served, it is replaced. Returns when its place is reached.
    async fn serve(&self, app: App) -> Result<(), Trouble>;
    /// Stops the work for the app, if there is any.
    async fn stop(&self, name: &str);
    /// Stops the work for all apps gracefully. The consents stay valid for the next start.
    async fn end(&self) {}
    /// The condition of an app that is served, as far as it is known.
    fn condition(&self, name: &str) -> Condition {
        let _ = name;
        Condition::default()
    }
}

/// The state of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum State {
    /// The user has not consented yet.
    New,
    Starting,
    Serving,
    /// It is served, but its place does not answer or refuses. That is retried.
    Offline(Problem),
    Stopped,
    /// It is not served, and will not be until a person intervenes.
    Failed(Problem),
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub problem: String,
    /// Seconds since the Unix epoch.
    pub since: u64,
}

/// The condition of running work.
#[derive(Debug, Clone, Default)]
pub struct Condition {
    /// There is a problem with its place.
    pub trouble: Option<Problem>,
    /// The work has ended by itself, for the reason in `trouble`.
    pub ended: bool,
    /// The last error, with an item or a poll. It may be long over.
    pub last_error: Option<Mishap>,
}

impl Problem {
    pub(super) fn now(problem: String) -> Self {
        Self { problem, since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()) }
    }
}

/// The result of an app's message.
#[derive(Debug)]
pub enum ConsentOutcome {
    /// The user consented to exactly this before. The token is valid for the shared models.
    Agreed { token: String },
    /// The user must be asked. These parts have changed since the last consent.
    Ask { proposal: Proposal, changed: Vec<&'static str> },
}

impl Host {
    /// Adds an app to the page. `own` is our own authority, which cannot be an app.
    pub fn add(&self, name: &str, url: &str, own: Option<&str>) -> Result<(), Error> {
        self.shared.store.add(Entry::new(name, url, own)?)
    }

    /// Serves the apps that the user has consented to before. Call it once, at the start.
    pub async fn resume(&self) {
        let agreed = self.shared.store.all().into_iter().filter(|kept| kept.consent.as_ref().is_some_and(|consent| !consent.stopped));
        futures_util::future::join_all(agreed.map(|kept| async move { self.serve(&kept.entry.name).await })).await;
    }

    pub fn state(&self, name: &str) -> State {
        let known = locked(&self.shared.states).get(name).cloned();
        let known = known.unwrap_or_else(|| match self.shared.store.get(name).ok().and_then(|kept| kept.consent) {
            None => State::New,
            Some(_) => State::Stopped,
        });
        match (known, self.shared.serve.condition(name)) {
            (State::Serving, Condition { trouble: Some(problem), ended: true, .. }) => State::Failed(problem),
            (State::Serving, Condition { trouble: Some(problem), .. }) => State::Offline(problem),
            (known, _) => known,
        }
    }

    /// Handles the message of an app that says where its work is.
    pub fn ask(&self, name: &str, message: Value) -> Result<ConsentOutcome, Error> {
        let place = Place::read(message)?;
        let agreed = self.shared.store.get(name)?.consent;
        if agreed.as_ref().is_some_and(|agreed| agreed.place == place) {
            let token = self.shared.store.consent(name, |consent| consent.as_mut().map(Consent::give_token))?;
            return token.map(|token| ConsentOutcome::Agreed { token }).ok_or(Error::Outdated);
        }
        let changed = agreed.map(|agreed| place.changes(&agreed.place)).unwrap_or_default();
        let mut asking = locked(&self.shared.asking);
        // A repeated request counts as the same proposal.
        let proposal = match asking.get(name) {
            Some(proposal) if proposal.place == place => proposal.clone(),
            _ => Proposal::new(place),
        };
        asking.insert(name.to_owned(), proposal.clone());
        Ok(ConsentOutcome::Ask { proposal, changed })
    }

    /// The user consents to this very proposal. The token is valid for the shared models.
    pub async fn agree(&self, name: &str, proposal: &str) -> Result<String, Error> {
        let place = self.take_proposal(name, proposal)?.place;
        let given_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().try_into().unwrap_or(i64::MAX));
        let mut consent = Consent { place, given_at, stopped: false, tokens: Vec::new() };
        let token = consent.give_token();
        self.shared.store.consent(name, |kept| *kept = Some(consent))?;
        tracing::info!(app = name, "the person agreed to serve an app");
        self.serve(name).await;
        Ok(token)
    }

    /// The user declines. An earlier consent stays valid.
    pub fn decline(&self, name: &str, proposal: &str) -> Result<(), Error> {
        self.take_proposal(name, proposal).map(drop)
    }

    fn take_proposal(&self, name: &str, id: &str) -> Result<Proposal, Error> {
        let mut asking = locked(&self.shared.asking);
        match asking.get(name) {
            Some(proposal) if proposal.id == id => asking.remove(name).ok_or(Error::Outdated),
            _ => Err(Error::Outdated),
        }
    }

    /// Serves an app again that was stopped.
    pub async fn start(&self, name: &str) -> Result<(), Error> {
        let agreed = self.shared.store.consent(name, |consent| consent.as_mut().map(|consent| consent.stopped = false).is_some())?;
        if !agreed {
            return Err(Error::Invalid("the user has not agreed to serve this app".into()));
        }
        self.serve(name).await;
        Ok(())
    }

    /// Stops serving. The consent and the token stay valid.
    pub async fn stop(&self, name: &str) -> Result<(), Error> {
        self.shared.store.consent(name, |consent| consent.as_mut().map(|consent| consent.stopped = true))?;
        self.end(name, Some(State::Stopped)).await;
        Ok(())
    }

    /// Revokes the consent: the work stops, and the app's tokens become invalid.
    pub async fn revoke(&self, name: &str) -> Result<(), Error> {
        self.shared.store.consent(name, |consent| *consent = None)?;
        self.end(name, None).await;
        tracing::info!(app = name, "the person took back their consent");
        Ok(())
    }

    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.shared.store.remove(name)?;
        locked(&self.shared.asking).remove(name);
        locked(&self.shared.usage).remove(name);
        self.end(name, None).await;
        Ok(())
    }

    async fn end(&self, name: &str, state: Option<State>) {
        self.shared.serve.stop(name).await;
        self.set(name, state);
    }

    fn set(&self, name: &str, state: Option<State>) {
        let mut states = locked(&self.shared.states);
        match state {
            Some(state) => states.insert(name.to_owned(), state),
            None => states.remove(name),
        };
    }

    /// The place at which the app is to be served now.
    fn wanted(&self, name: &str) -> Option<Place> {
        let consent = self.shared.store.get(name).ok()?.consent?;
        (!consent.stopped).then_some(consent.place)
    }

    async fn serve(&self, name: &str) {
        let Some(place) = self.wanted(name) else { return };
        self.set(name, Some(State::Starting));
        let app = App { name: name.to_owned(), place: place.clone() };
        let served = tokio::time::timeout(START_WITHIN, self.shared.serve.serve(app)).await;
        let state = match served {
            Ok(Ok(())) => State::Serving,
            Ok(Err(trouble)) => State::Failed(Problem::now(trouble.to_string())),
            Err(_) => State::Failed(Problem::now(format!("{} did not answer within {} s", place.url, START_WITHIN.as_secs()))),
        };
        if let State::Failed(Problem { problem, .. }) = &state {
            tracing::warn!(app = name, problem, "an app cannot be served");
        }
        match self.wanted(name) {
            Some(wanted) if wanted == place => self.set(name, Some(state)),
            // The user consented to something else meanwhile. The call that handles that consent serves the app instead.
            Some(_) => {}
            // Stopped or revoked while it was starting.
            None => self.shared.serve.stop(name).await,
        }
    }
}
