//! Named models: OpenAI-compatible endpoints, here or elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::file;
use super::mistake::Mistakes;

/// What a model is good for.
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
    /// With `/v1`, without a slash at the end; none when the environment was to name it and does not.
    pub base_url: Option<String>,
    pub model: String,
    pub key_env: Option<String>,
    pub key_file: Option<PathBuf>,
    pub timeout: Duration,
    url_env: Option<String>,
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

    /// What is missing before it can be asked, and what to do about it.
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

/// Local models think for a while.
const TIMEOUT: Duration = Duration::from_secs(120);

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

    /// What asks them, and calls others: one for all, since making one reads every certificate of the machine.
    pub(crate) fn client(&self) -> Result<reqwest::Client, reqwest::Error> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let client = crate::stages::client()?;
        Ok(self.client.get_or_init(|| client).clone())
    }

    pub(super) fn read(file: &file::File, folder: &std::path::Path, mistakes: &mut Mistakes<'_>) -> Self {
        let mut models = BTreeMap::new();
        for (name, model) in &file.models {
            let (place, given) = (model.span(), model.get_ref());
            let kind = match given.kind.get_ref().as_str() {
                "chat" => Kind::Chat,
                "transcription" => Kind::Transcription,
                "embedding" => Kind::Embedding,
                other => {
                    mistakes.at(
                        &given.kind.span(),
                        format!("model {name} is of kind {other:?}; write \"chat\", \"transcription\" or \"embedding\""),
                    );
                    continue;
                }
            };
            if given.url.is_some() && given.url_env.is_some() {
                mistakes.at(&place, format!("model {name} has both url and url_env; keep one"));
            }
            if given.key_env.is_some() && given.key_file.is_some() {
                mistakes.at(&place, format!("model {name} has both key_env and key_file; keep one"));
            }
            let url = given.url.clone().or_else(|| given.url_env.as_ref().and_then(|variable| std::env::var(variable).ok()));
            let url = url.map(|url| url.trim().trim_end_matches('/').to_owned()).filter(|url| !url.is_empty());
            if let Some(url) = url.as_deref().filter(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
                mistakes.at(&place, format!("model {name} has the URL {url:?}; it looks like https://api.example.com/v1"));
            }
            let timeout = super::plan::duration(given.timeout.as_ref(), mistakes).unwrap_or(TIMEOUT);
            models.insert(
                name.clone(),
                Model {
                    name: name.clone(),
                    kind,
                    base_url: url,
                    model: given.model.clone(),
                    key_env: given.key_env.clone(),
                    key_file: given.key_file.as_ref().map(|file| folder.join(file)),
                    timeout,
                    url_env: given.url_env.clone(),
                },
            );
        }
        Self { all: models, client: Arc::default() }
    }
}

impl FromIterator<Model> for Models {
    fn from_iter<I: IntoIterator<Item = Model>>(models: I) -> Self {
        Self { all: models.into_iter().map(|model| (model.name.clone(), model)).collect(), client: Arc::default() }
    }
}
