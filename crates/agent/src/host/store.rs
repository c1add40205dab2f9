//! The apps and the consents, in a file that only its owner can read.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::asked::Place;
use super::{Entry, Error, locked, token};

const FILE: &str = "host.json";
/// How many tokens of one app are valid at a time. A frame gets a new one each time it is loaded, and there may be two windows.
const MOST_TOKENS: usize = 4;
/// How many apps the page may have.
const MOST_APPS: usize = 50;

#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    apps: Mutex<Vec<Kept>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(flatten)]
    pub entry: Entry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
}

/// The user's consent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Consent {
    pub place: Place,
    /// Unix seconds.
    pub given_at: i64,
    /// The user has stopped the app, and has not revoked the consent.
    #[serde(default)]
    pub stopped: bool,
    /// Hashes, the newest last.
    #[serde(default)]
    pub tokens: Vec<String>,
}

impl Store {
    pub(super) fn open(home: &Path) -> Result<Self, Error> {
        let path = home.join(FILE);
        let apps = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| Error::Spoiled { path: path.clone(), why: error.to_string() })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(Error::File { path, source }),
        };
        Ok(Self { path, apps: Mutex::new(apps) })
    }

    pub(super) fn all(&self) -> Vec<Kept> {
        locked(&self.apps).clone()
    }

    pub(super) fn get(&self, name: &str) -> Result<Kept, Error> {
        locked(&self.apps).iter().find(|kept| kept.entry.name == name).cloned().ok_or_else(|| Error::NoApp(name.to_owned()))
    }

    pub(super) fn add(&self, entry: Entry) -> Result<(), Error> {
        self.change(|apps| {
            if apps.iter().any(|kept| kept.entry.name.eq_ignore_ascii_case(&entry.name)) {
                return Err(Error::Invalid(format!("there is an app named {:?} already", entry.name)));
            }
            if apps.len() >= MOST_APPS {
                return Err(Error::Invalid(format!("a page has at most {MOST_APPS} apps")));
            }
            apps.push(Kept { entry, consent: None });
            Ok(())
        })
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        self.change(|apps| {
            let before = apps.len();
            apps.retain(|kept| kept.entry.name != name);
            if apps.len() == before { Err(Error::NoApp(name.to_owned())) } else { Ok(()) }
        })
    }

    /// Changes the consent for one app.
    pub(super) fn consent<T>(&self, name: &str, change: impl FnOnce(&mut Option<Consent>) -> T) -> Result<T, Error> {
        self.change(|apps| {
            let kept = apps.iter_mut().find(|kept| kept.entry.name == name).ok_or_else(|| Error::NoApp(name.to_owned()))?;
            Ok(change(&mut kept.consent))
        })
    }

    /// The app that holds this token, while the consent is valid.
    pub(super) fn holder(&self, token: &str) -> Option<Kept> {
        let hash = token::hash(token);
        let holds = |consent: &Consent| consent.tokens.iter().any(|known| token::same(known, &hash));
        locked(&self.apps).iter().find(|kept| kept.consent.as_ref().is_some_and(holds)).cloned()
    }

    /// A change that cannot be written is not applied: a consent that is lost at the next start would be worse than none.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Kept>) -> Result<T, Error>) -> Result<T, Error> {
        let mut apps = locked(&self.apps);
        let mut changed = apps.clone();
        let value = change(&mut changed)?;
        self.write(&changed).map_err(|source| Error::File { path: self.path.clone(), source })?;
        *apps = changed;
        Ok(value)
    }

    fn write(&self, apps: &[Kept]) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(apps)?;
        let beside = self.path.with_extension("json.new");
        // A leftover file may be readable by other users.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&beside)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&beside, &self.path)
    }
}

impl Consent {
    /// Creates another token. It replaces the oldest one if there are too many.
    pub(super) fn give_token(&mut self) -> String {
        let token = token::new();
        self.tokens.push(token::hash(&token));
        let surplus = self.tokens.len().saturating_sub(MOST_TOKENS);
        self.tokens.drain(..surplus);
        token
    }
}
