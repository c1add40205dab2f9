//! What a stage can be: built in, a model, a command, a call.
//!
//! # Layout
//!
//! - [`text`] needs no model; `builtin` runs it. `chat`, `transcribe` and `embed` ask a model, by way of `openai`.
//! - `command` runs a program and `http` calls somebody; `template` fills in what they are told.
//! - `recording` gets the sound of an item and [`audio`] makes it 16 kHz mono; [`failure`] sorts what goes wrong.

pub mod audio;
pub(crate) mod builtin;
pub(crate) mod chat;
pub(crate) mod command;
pub(crate) mod embed;
pub mod failure;
pub(crate) mod http;
mod openai;
pub(crate) mod recording;
pub(crate) mod template;
pub mod text;
pub(crate) mod transcribe;

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, FixedOffset};
use gleaner::{Context, Failure, Item, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::recording::Recording;
use crate::pipeline::Models;

/// For requests whose end is watched in another way.
pub(crate) const FOREVER: Duration = Duration::from_secs(6 * 3600);
const CONNECT: Duration = Duration::from_secs(15);

/// How HTTP is spoken by everything here.
pub(crate) fn client_builder() -> reqwest::ClientBuilder {
    // The client leaves the choice of cryptography to the program; a second one finds it made.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().connect_timeout(CONNECT).user_agent(concat!("gleaner-agent/", env!("CARGO_PKG_VERSION")))
}

pub(crate) fn client() -> Result<reqwest::Client, reqwest::Error> {
    client_builder().build()
}

/// One stage of a pipeline, ready to run.
#[derive(Debug, Clone)]
pub struct Stage {
    pub name: String,
    /// The key of the result it writes; `*` for the keys of its answer.
    pub(crate) key: String,
    pub(crate) keep: bool,
    pub(crate) timeout: Duration,
    pub(crate) category: Option<String>,
    pub(crate) work: Work,
}

#[derive(Debug, Clone)]
pub(crate) enum Work {
    Builtin(builtin::Builtin),
    Chat(chat::Chat),
    Transcribe(transcribe::Transcribe),
    Embed(embed::Embed),
    Command(command::Command),
    Http(http::Http),
}

/// What a stage sees of an item.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub queue: &'a str,
    pub item: &'a Item,
    pub record: Option<&'a Value>,
    /// What is to be read: the transcript, or what was written.
    pub text: &'a str,
    /// When it was said or written, in the agent's own time.
    pub written: DateTime<FixedOffset>,
    /// What earlier stages found, by key.
    pub results: &'a Map<String, Value>,
    pub recording: &'a Recording<'a>,
    /// Identifies this run of the stage, whoever repeats it.
    pub fingerprint: &'a str,
    pub models: &'a Models,
}

/// What a stage made.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Output {
    pub value: Value,
    pub tokens: Tokens,
    /// The model that did it, in the endpoint's words.
    pub model: Option<String>,
}

impl Output {
    pub fn new(value: impl Into<Value>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }
}

/// What models counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub total: u64,
}

impl Tokens {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { input: self.input + other.input, output: self.output + other.output, total: self.total + other.total }
    }
}

/// Hears how far a stage has come.
#[async_trait]
pub(crate) trait Report: Send + Sync {
    /// False when the item is no longer ours: stop.
    async fn progress(&self, stage: &str, percent: Option<f64>, partial: Option<&Value>) -> bool;
}

#[async_trait]
impl Report for Context {
    async fn progress(&self, stage: &str, percent: Option<f64>, partial: Option<&Value>) -> bool {
        match Context::progress(self, stage, percent, partial).await {
            Ok(outcome) => outcome == Outcome::Done,
            Err(error) => {
                // Only time is lost: the work goes on, and the next checkpoint has all of it.
                tracing::warn!(%error, stage, "progress was not written");
                true
            }
        }
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Silent;

#[async_trait]
impl Report for Silent {
    async fn progress(&self, _: &str, _: Option<f64>, _: Option<&Value>) -> bool {
        true
    }
}

/// Scales what a stage reports into its share of the whole.
pub(crate) struct Share<'a> {
    pub report: &'a dyn Report,
    pub stage: &'a str,
    pub from: f64,
    pub to: f64,
}

impl Share<'_> {
    /// `note` says what the stage does just now.
    pub async fn progress(&self, note: Option<&str>, percent: Option<f64>, partial: Option<&Value>) -> bool {
        let stage = note.map_or_else(|| self.stage.to_owned(), |note| format!("{}: {note}", self.stage));
        let percent = percent.map(|percent| self.from + (self.to - self.from) * percent.clamp(0.0, 100.0) / 100.0);
        self.report.progress(&stage, percent, partial).await
    }
}

impl Stage {
    /// Whether it listens to the item's recording.
    pub(crate) fn needs_audio(&self) -> bool {
        match &self.work {
            Work::Transcribe(_) => true,
            Work::Command(command) => command.audio,
            _ => false,
        }
    }

    /// Whether a model does it.
    pub(crate) fn asks_model(&self) -> bool {
        matches!(self.work, Work::Chat(_) | Work::Transcribe(_) | Work::Embed(_))
    }

    /// What does it, for people.
    pub(crate) fn by(&self, output: &Output) -> String {
        let model = |name: &str| output.model.as_ref().map_or_else(|| format!("model {name}"), |model| format!("model {name} ({model})"));
        match &self.work {
            Work::Builtin(builtin) => format!("built in: {}", builtin.method()),
            Work::Chat(chat) => model(&chat.model),
            Work::Transcribe(transcribe) => model(&transcribe.model),
            Work::Embed(embed) => model(&embed.model),
            Work::Command(command) => format!("command: {}", command.describe()),
            Work::Http(http) => format!("call: {}", http.describe()),
        }
    }

    /// What is missing before it can run here, and what to do about it.
    pub(crate) fn lacks(&self, models: &Models) -> Option<String> {
        let model = |name: &str| models.get(name).and_then(crate::pipeline::Model::lacks);
        match &self.work {
            Work::Builtin(_) | Work::Http(_) => None,
            Work::Chat(chat) => model(&chat.model),
            Work::Transcribe(transcribe) => model(&transcribe.model),
            Work::Embed(embed) => model(&embed.model),
            Work::Command(command) => command.lacks(),
        }
    }

    /// All that decides what it makes of the same item. Whoever changes it wants it made again.
    pub(crate) fn configuration(&self, models: &Models) -> Value {
        let model = |name: &str| models.get(name).map(|model| json!([model.base_url, model.model]));
        let work = match &self.work {
            Work::Builtin(builtin) => json!(["builtin", builtin.configuration()]),
            Work::Chat(chat) => json!(["chat", model(&chat.model), chat.configuration()]),
            Work::Transcribe(transcribe) => json!(["transcribe", model(&transcribe.model), transcribe.configuration()]),
            Work::Embed(embed) => json!(["embed", model(&embed.model)]),
            Work::Command(command) => json!(["command", command.configuration()]),
            Work::Http(http) => json!(["http", http.configuration()]),
        };
        json!([self.key, work])
    }

    /// The part of what it sees that decides its result.
    pub(crate) fn input(&self, seen: &Seen<'_>) -> Result<Value, Failure> {
        Ok(match &self.work {
            Work::Builtin(builtin) => builtin.input(seen),
            Work::Chat(chat) => json!(chat.messages(seen)?),
            Work::Embed(_) => json!(seen.text),
            // What it says is decided by the sound alone, so that nothing else makes it be listened to again.
            Work::Transcribe(_) => json!(seen.recording.address()),
            Work::Command(command) if command.audio => json!([seen.recording.address(), seen.item.payload]),
            Work::Command(_) => json!([seen.item.payload, seen.text, seen.results]),
            Work::Http(http) => http.input(seen)?,
        })
    }

    /// Runs it, within its time.
    pub(crate) async fn run(&self, seen: &Seen<'_>, share: &Share<'_>) -> Result<Output, Failure> {
        let running = async {
            match &self.work {
                Work::Builtin(builtin) => builtin.run(seen).await,
                Work::Chat(chat) => chat.run(seen).await,
                Work::Transcribe(transcribe) => transcribe.run(seen, share).await,
                Work::Embed(embed) => embed.run(seen).await,
                Work::Command(command) => command.run(self, seen, share).await,
                Work::Http(http) => http.run(self, seen).await,
            }
        };
        let result = match tokio::time::timeout(self.timeout, running).await {
            Ok(result) => result,
            Err(_) => Err(Failure::new(format!("stage {} took longer than {}", self.name, humantime::format_duration(self.timeout)))
                .category(self.default_category())),
        };
        result.map_err(|failure| self.named(failure))
    }

    fn named(&self, mut failure: Failure) -> Failure {
        use failure::{CANCELLED, DOWNLOAD, VALIDATION};
        // A recording that cannot be fetched is no mistake of what would have listened to it.
        if let Some(category) = &self.category
            && ![CANCELLED, DOWNLOAD, VALIDATION].contains(&failure.category.as_str())
        {
            failure.category.clone_from(category);
        }
        if failure.category != CANCELLED && !failure.message.starts_with("stage ") {
            failure.message = format!("stage {}: {}", self.name, failure.message);
        }
        failure
    }

    pub(crate) fn default_category(&self) -> &'static str {
        match &self.work {
            Work::Transcribe(_) => failure::TRANSCRIPTION,
            Work::Command(command) if command.audio => failure::TRANSCRIPTION,
            Work::Chat(_) | Work::Embed(_) => failure::MODEL,
            Work::Builtin(_) | Work::Command(_) | Work::Http(_) => failure::STAGE,
        }
    }
}
