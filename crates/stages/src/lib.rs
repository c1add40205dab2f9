//! The kinds of stages: built in, a model, a command, an HTTP call.
//!
//! # Layout
//!
//! - [`text`] needs no model; `builtin` runs it. `chat`, `transcribe` and `embed` call a model through `openai`.
//! - `document` reads the file of a dump in a process of its own.
//! - `command` runs a program and `http` calls a service; `template` renders their input.
//! - `recording` gets the audio of an item through [`fetch`], and [`audio`] converts it to 16 kHz mono; [`failure`] classifies
//!   errors.
//! - [`sinks`] send a message to a person: by HTTP, mail, Telegram, Twilio or a command.
//! - [`models`] are the endpoints that stages call; [`said`] reads the progress that a program reports.

pub mod audio;
pub mod builtin;
pub mod chat;
pub mod command;
pub mod document;
pub mod embed;
pub mod failure;
pub mod fetch;
pub mod http;
pub mod models;
mod openai;
pub mod recording;
pub mod said;
pub mod sinks;
pub mod template;
pub mod text;
pub mod transcribe;

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, FixedOffset};
use gleaner::{Context, Failure, Item, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::recording::Recording;
use crate::models::{Model, Models};

/// The timeout of requests that are limited in another way.
pub const FOREVER: Duration = Duration::from_secs(6 * 3600);
const CONNECT: Duration = Duration::from_secs(15);

/// The settings of every HTTP client here.
pub fn client_builder() -> reqwest::ClientBuilder {
    // The client leaves the choice of the crypto provider to the program. An error means that one is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().connect_timeout(CONNECT).user_agent(concat!("gleaner-agent/", env!("CARGO_PKG_VERSION")))
}

pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    client_builder().build()
}

/// One stage of a pipeline, ready to run.
#[derive(Debug, Clone)]
pub struct Stage {
    pub name: String,
    /// The key of the result it writes. `*` stores each key of its answer.
    pub key: String,
    pub keep: bool,
    pub timeout: Duration,
    pub category: Option<String>,
    pub work: Work,
}

#[derive(Debug, Clone)]
pub enum Work {
    Builtin(builtin::Builtin),
    Chat(chat::Chat),
    Transcribe(transcribe::Transcribe),
    Embed(embed::Embed),
    Command(command::Command),
    Http(http::Http),
}

/// What a stage sees of an item.
#[derive(Debug)]
pub struct Seen<'a> {
    pub queue: &'a str,
    pub item: &'a Item,
    pub record: Option<&'a Value>,
    /// The text to process: the transcript, or what was written.
    pub text: &'a str,
    /// When it was said or written, in the agent's own time zone.
    pub written: DateTime<FixedOffset>,
    /// The results of earlier stages, by key.
    pub results: &'a Map<String, Value>,
    pub recording: &'a Recording<'a>,
    pub fetch: &'a dyn fetch::Fetch,
    /// Identifies this run of the stage. A retry by another agent has the same value.
    pub fingerprint: &'a str,
    pub models: &'a Models,
}

impl Seen<'_> {
    /// The same for each try of this stage on this item: a service that knows it does the work once.
    fn key(&self) -> String {
        format!("{}-{}-{}", self.queue, self.item.key, self.fingerprint)
    }
}

/// The output of a stage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    pub value: Value,
    pub tokens: Tokens,
    /// The model that was used, by the endpoint's own name for it.
    pub model: Option<String>,
}

impl Output {
    pub fn new(value: impl Into<Value>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }
}

/// The token counts that models report.
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

/// Receives the progress of a stage.
#[async_trait]
pub trait Report: std::fmt::Debug + Send + Sync {
    /// False when we no longer hold the item: the stage must stop.
    async fn progress(&self, stage: &str, percent: Option<f64>, partial: Option<&Value>) -> bool;
}

#[async_trait]
impl Report for Context {
    async fn progress(&self, stage: &str, percent: Option<f64>, partial: Option<&Value>) -> bool {
        match Context::progress(self, stage, percent, partial).await {
            Ok(outcome) => outcome == Outcome::Done,
            Err(error) => {
                // Only the progress report is lost: the work goes on, and the next checkpoint contains all of it.
                tracing::warn!(%error, stage, "progress was not written");
                true
            }
        }
    }
}

/// Discards the progress.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

#[async_trait]
impl Report for Silent {
    async fn progress(&self, _: &str, _: Option<f64>, _: Option<&Value>) -> bool {
        true
    }
}

/// Scales the progress of a stage to its share of the whole pipeline.
#[derive(Debug)]
pub struct Share<'a> {
    pub report: &'a dyn Report,
    pub stage: &'a str,
    pub from: f64,
    pub to: f64,
}

impl Share<'_> {
    /// `note` says what the stage is doing.
    pub async fn progress(&self, note: Option<&str>, percent: Option<f64>, partial: Option<&Value>) -> bool {
        let stage = note.map_or_else(|| self.stage.to_owned(), |note| format!("{}: {note}", self.stage));
        let percent = percent.map(|percent| self.from + (self.to - self.from) * percent.clamp(0.0, 100.0) / 100.0);
        self.report.progress(&stage, percent, partial).await
    }
}

impl Stage {
    /// Whether it needs the item's recording.
    pub fn needs_audio(&self) -> bool {
        match &self.work {
            Work::Transcribe(_) => true,
            Work::Command(command) => command.audio,
            _ => false,
        }
    }

    /// Whether it uses a model.
    pub fn asks_model(&self) -> bool {
        matches!(self.work, Work::Chat(_) | Work::Transcribe(_) | Work::Embed(_))
    }

    /// A description of what runs, for people.
    pub fn by(&self, output: &Output) -> String {
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

    /// What is missing before it can run here, and how to fix it.
    pub fn lacks(&self, models: &Models) -> Option<String> {
        let model = |name: &str| models.get(name).and_then(Model::lacks);
        match &self.work {
            Work::Builtin(_) | Work::Http(_) => None,
            Work::Chat(chat) => model(&chat.model),
            Work::Transcribe(transcribe) => model(&transcribe.model),
            Work::Embed(embed) => model(&embed.model),
            Work::Command(command) => command.lacks(),
        }
    }

    /// Everything besides the item that decides its result. If it changes, the stage runs again.
    pub fn configuration(&self, models: &Models) -> Value {
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

    /// The part of the item and of earlier results that decides its result.
    pub fn input(&self, seen: &Seen<'_>) -> Result<Value, Failure> {
        Ok(match &self.work {
            Work::Builtin(builtin) => builtin.input(seen),
            Work::Chat(chat) => json!(chat.messages(seen)?),
            Work::Embed(_) => json!(seen.text),
            // Only the audio decides the transcript, so no other change causes it to be transcribed again.
            Work::Transcribe(_) => json!(seen.recording.address()),
            Work::Command(command) if command.audio => json!([seen.recording.address(), seen.item.payload]),
            Work::Command(_) => json!([seen.item.payload, seen.text, seen.results]),
            Work::Http(http) => http.input(seen)?,
        })
    }

    /// Runs the stage with its timeout.
    pub async fn run(&self, seen: &Seen<'_>, share: &Share<'_>) -> Result<Output, Failure> {
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
        // A recording that cannot be fetched is not an error of the stage that needed it.
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

    pub fn default_category(&self) -> &'static str {
        match &self.work {
            Work::Transcribe(_) => failure::TRANSCRIPTION,
            Work::Command(command) if command.audio => failure::TRANSCRIPTION,
            Work::Chat(_) | Work::Embed(_) => failure::MODEL,
            Work::Builtin(_) | Work::Command(_) | Work::Http(_) => failure::STAGE,
        }
    }
}
