//! Queries an agent on this machine, and sends it commands.

use std::path::Path;
use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::note::Note;

const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("no agent runs in {home}; `gleaner agent` starts one")]
    NoAgent { home: String },

    #[error("no agent is named {name:?} here; there are: {}", there.join(", "))]
    Unknown { name: String, there: Vec<String> },

    #[error("several agents run here: {}; name one of them", there.join(", "))]
    Several { there: Vec<String> },

    /// It no longer listens, or another program does.
    #[error("the agent {name} does not answer at {url}: {why}")]
    Away { name: String, url: String, why: String },
}

/// An agent found by its note.
#[derive(Debug, Clone)]
pub struct Remote {
    note: Note,
    client: Option<Client>,
}

impl Remote {
    pub(super) fn new(note: Note) -> Self {
        // The library requires one even if nothing is encrypted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { note, client: Client::builder().no_proxy().timeout(PATIENCE).build().ok() }
    }

    /// Every agent of this home that answers, with its status.
    pub async fn all(home: &Path) -> Vec<(Self, Value)> {
        let remotes = Note::all(home).into_iter().map(Self::new);
        let asked = remotes.map(async |remote| remote.status().await.ok().map(|status| (remote, status)));
        futures_util::future::join_all(asked).await.into_iter().flatten().collect()
    }

    /// The agent of that name, or the only one.
    pub async fn find(home: &Path, name: Option<&str>) -> Result<Self, Error> {
        let mut all: Vec<Self> = Self::all(home).await.into_iter().map(|(remote, _)| remote).collect();
        let there: Vec<String> = all.iter().map(|remote| remote.note.name.clone()).collect();
        match name {
            _ if all.is_empty() => Err(Error::NoAgent { home: home.display().to_string() }),
            Some(name) => {
                all.into_iter().find(|remote| remote.note.name == name).ok_or_else(|| Error::Unknown { name: name.to_owned(), there })
            }
            None if all.len() > 1 => Err(Error::Several { there }),
            None => Ok(all.remove(0)),
        }
    }

    pub fn name(&self) -> &str {
        &self.note.name
    }

    /// The address of its page.
    pub fn url(&self) -> &str {
        &self.note.url
    }

    /// Its status, as on `/status.json`.
    pub async fn status(&self) -> Result<Value, Error> {
        self.ask(Method::GET, "status.json", None).await
    }

    pub async fn pause(&self) -> Result<Value, Error> {
        self.ask(Method::POST, "pause", None).await
    }

    pub async fn resume(&self) -> Result<Value, Error> {
        self.ask(Method::POST, "resume", None).await
    }

    pub async fn set_concurrency(&self, most: usize) -> Result<Value, Error> {
        self.ask(Method::POST, "concurrency", Some(json!({"concurrency": most}))).await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let away = |why: String| Error::Away { name: self.note.name.clone(), url: self.note.url.clone(), why };
        let client = self.client.as_ref().ok_or_else(|| away("there is no HTTP client".into()))?;
        let mut request = client.request(method, format!("{}{path}", self.note.url)).bearer_auth(&self.note.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let plain = |error: reqwest::Error| away(error.without_url().to_string());
        let answer = request.send().await.map_err(plain)?;
        if !answer.status().is_success() {
            return Err(away(format!("it answered {}", answer.status())));
        }
        let answer: Value = answer.json().await.map_err(plain)?;
        // Another program may have taken the port since the note was written.
        if answer["pid"] != self.note.pid || answer["name"] != self.note.name.as_str() {
            return Err(away("another one listens there now".into()));
        }
        Ok(answer)
    }
}
