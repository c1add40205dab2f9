//! From a yes to work, and back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use gleaner::worker::Mishap;
use serde::Serialize;
use serde_json::Value;

use super::app::{App, Entry};
use super::asked::{Place, Proposal};
use super::store::Consent;
use super::{Error, Host, locked};

/// Reaching a place takes no longer, or it is not reached.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Why an app cannot be served; a person reads it on the page.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// Whoever does the work of apps: workers for the place of each, by the name of the app.
#[async_trait]
pub trait Serve: Send + Sync + 'static {
    /// Begins to serve the app; one of that name that is served already is replaced. Returns when its place is reached.
    async fn serve(&self, app: App) -> Result<(), Trouble>;
    /// Ends the work for the app, if there is any.
    async fn stop(&self, name: &str);
    /// Ends the work for all of them in good order; what the person agreed to holds for the next start.
    async fn end(&self) {}
    /// How the app is doing that is served, as far as anybody can tell.
    fn condition(&self, name: &str) -> Condition {
        let _ = name;
        Condition::default()
    }
}

/// How an app is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum State {
    /// Nobody has said yes.
    New,
    Starting,
    Serving,
    /// It is served, but its place does not answer or refuses; that is tried again.
    Offline(Problem),
    Stopped,
    /// It is not served, and will not be before somebody does something.
    Failed(Problem),
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub problem: String,
    /// Seconds since the Unix epoch.
    pub since: u64,
}

/// What work in progress tells of itself.
#[derive(Debug, Clone, Default)]
pub struct Condition {
    /// Its place is in trouble.
    pub trouble: Option<Problem>,
    /// The work has ended by itself, for the reason in `trouble`.
    pub ended: bool,
    /// What went wrong last, with an item or a look. It may be long over.
    pub last_error: Option<Mishap>,
}

impl Problem {
    pub(super) fn now(problem: String) -> Self {
        Self { problem, since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()) }
    }
}

/// What came of a message of an app.
#[derive(Debug)]
pub enum Asked {
    /// The person agreed to exactly this before; the token is good for the shared models.
    Agreed { token: String },
    /// The person must be asked; these parts have changed since they last agreed.
    Ask { proposal: Proposal, changed: Vec<&'static str> },
}

impl Host {
    /// Puts an app on the page. `own` is our own authority, which is no app.
    pub fn add(&self, name: &str, url: &str, own: Option<&str>) -> Result<(), Error> {
        self.shared.store.add(Entry::new(name, url, own)?)
    }

    /// Serves what the person has agreed to before; call it once, at the start.
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

    /// An app of the page says where its work is.
    pub fn ask(&self, name: &str, message: Value) -> Result<Asked, Error> {
        let place = Place::read(message)?;
        let agreed = self.shared.store.get(name)?.consent;
        if agreed.as_ref().is_some_and(|agreed| agreed.place == place) {
            let token = self.shared.store.consent(name, |consent| consent.as_mut().map(Consent::give_token))?;
            return token.map(|token| Asked::Agreed { token }).ok_or(Error::Outdated);
        }
        let changed = agreed.map(|agreed| place.changes(&agreed.place)).unwrap_or_default();
        let mut asking = locked(&self.shared.asking);
        // Asking for the same again is the same question.
        let proposal = match asking.get(name) {
            Some(proposal) if proposal.place == place => proposal.clone(),
            _ => Proposal::new(place),
        };
        asking.insert(name.to_owned(), proposal.clone());
        Ok(Asked::Ask { proposal, changed })
    }

    /// The person says yes to this very proposal. The token is good for the shared models.
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

    /// The person says no. What they agreed to before stands.
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

    /// Begins again with an app that was stopped.
    pub async fn start(&self, name: &str) -> Result<(), Error> {
        let agreed = self.shared.store.consent(name, |consent| consent.as_mut().map(|consent| consent.stopped = false).is_some())?;
        if !agreed {
            return Err(Error::Invalid("nobody has agreed to serve this app".into()));
        }
        self.serve(name).await;
        Ok(())
    }

    /// Stops serving; the yes stands, and so does the token.
    pub async fn stop(&self, name: &str) -> Result<(), Error> {
        self.shared.store.consent(name, |consent| consent.as_mut().map(|consent| consent.stopped = true))?;
        self.end(name, Some(State::Stopped)).await;
        Ok(())
    }

    /// Takes the yes back: the work ends, and so do the app's tokens.
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

    /// The place the app is to be served at, as things stand.
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
            // Agreed to something else meanwhile: whoever did that serves it, in place of this.
            Some(_) => {}
            // Stopped or taken back while it began.
            None => self.shared.serve.stop(name).await,
        }
    }
}
