//! Named models: OpenAI-compatible endpoints, local or remote.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The purpose of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Chat,
    Transcription,
    Embedding,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Transcription => "transcription",
            Self::Embedding => "embedding",
        }
    }

    /// Its path below the base URL.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Transcription => "audio/transcriptions",
            Self::Embedding => "embeddings",
        }
    }
}

/// One endpoint. Its key is read when it is used, so that it can be changed and is never printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    pub name: String,
    pub kind: Kind,
    /// Includes `/v1`, without a trailing slash. None if the environment variable that should name it is not set.
    pub base_url: Option<String>,
    pub model: String,
    pub key_env: Option<String>,
    pub key_file: Option<PathBuf>,
    pub timeout: Duration,
    /// The variable that should name it.
    pub url_env: Option<String>,
}

impl Model {
    /// An endpoint without a key.
    pub fn new(name: &str, kind: Kind, base_url: &str, model: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            base_url: Some(base_url.trim_end_matches('/').to_owned()),
            model: model.to_owned(),
            key_env: None,
            key_file: None,
            timeout: TIMEOUT,
            url_env: None,
        }
    }

    /// What is missing before it can be used, and how to fix it.
    pub fn lacks(&self) -> Option<String> {
        if self.base_url.is_none() {
            return Some(match &self.url_env {
                Some(variable) => format!("model {} has no URL: set {variable}, for example http://127.0.0.1:11434/v1", self.name),
                None => format!("model {} has no URL: write url = \"http://127.0.0.1:11434/v1\"", self.name),
            });
        }
        self.key().err()
    }

    pub fn key(&self) -> Result<Option<String>, String> {
        let found = if let Some(variable) = &self.key_env {
            let value = std::env::var(variable).unwrap_or_default();
            Some(if value.trim().is_empty() { Err(format!("model {} has no key: set {variable}", self.name)) } else { Ok(value) })
        } else {
            self.key_file.as_ref().map(|file| {
                std::fs::read_to_string(file).map_err(|error| format!("model {} has no key: read {}: {error}", self.name, file.display()))
            })
        };
        found.transpose().map(|key| key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()))
    }

    pub fn url(&self) -> Result<String, String> {
        let base = self.base_url.as_deref().ok_or_else(|| self.lacks().unwrap_or_default())?;
        Ok(format!("{base}/{}", self.kind.path()))
    }
}

/// Local models can take a while.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// The models of a pipeline file, by name. Clones share their connections.
#[derive(Debug, Clone, Default)]
pub struct Models {
    all: BTreeMap<String, Model>,
    client: Arc<OnceLock<reqwest::Client>>,
}

impl Models {
    pub fn get(&self, name: &str) -> Option<&Model> {
        self.all.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.all.values()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The HTTP client for models and other services. There is one for all, because creating one reads every certificate of the
    /// machine.
    pub fn client(&self) -> Result<reqwest::Client, reqwest::Error> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let client = crate::client()?;
        Ok(self.client.get_or_init(|| client).clone())
    }
}

impl FromIterator<Model> for Models {
    fn from_iter<I: IntoIterator<Item = Model>>(models: I) -> Self {
        Self { all: models.into_iter().map(|model| (model.name.clone(), model)).collect(), client: Arc::default() }
    }
}
