//! The format of a pipeline file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The language in which models answer: a name, or the language of the item.
    #[serde(default)]
    pub language: Option<String>,
    /// The languages that people use here, as codes. This improves language detection for short texts.
    #[serde(default)]
    pub languages: Vec<String>,
    /// The country of telephone numbers without a country code.
    #[serde(default)]
    pub region: Option<Spanned<String>>,
    /// The time zone for phrases such as "tomorrow at three". The agent's own time zone by default.
    #[serde(default)]
    pub utc_offset: Option<Spanned<String>>,
    #[serde(default)]
    pub recordings: Recordings,
    #[serde(default)]
    pub models: BTreeMap<String, Spanned<Model>>,
    #[serde(default)]
    pub stages: BTreeMap<String, Spanned<Stage>>,
    #[serde(default)]
    pub queues: BTreeMap<String, Spanned<Queue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recordings {
    /// Larger files are not fetched.
    #[serde(default)]
    pub limit_mib: Option<u64>,
    /// Longer recordings are not processed.
    #[serde(default)]
    pub longest: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub kind: Spanned<String>,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub url_env: Option<String>,
    pub model: String,
    #[serde(default)]
    pub key_env: Option<String>,
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    #[serde(default)]
    pub timeout: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Queue {
    /// The path of the text in the payload.
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub record: Option<Record>,
    #[serde(default)]
    pub time_limit: Option<Spanned<String>>,
    pub kinds: BTreeMap<String, Spanned<Kind>>,
}

/// A row that belongs to the item, read before the first stage.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub table: String,
    #[serde(default = "id")]
    pub key: String,
    /// The path of the key's value in the payload. The item's own key by default.
    #[serde(default)]
    pub value: Option<String>,
    /// The column that holds the text, if the payload has none.
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default = "created_at")]
    pub created: String,
}

fn id() -> String {
    "id".into()
}

fn created_at() -> String {
    "created_at".into()
}

/// The stages of one kind, in order.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a kind is a list of stages, such as [\"clean\", \"summary\"], or {stages = […], time_limit = \"10 minutes\"}"
)]
pub(super) enum Kind {
    List(Vec<String>),
    Table(KindTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KindTable {
    pub stages: Vec<String>,
    #[serde(default)]
    pub time_limit: Option<String>,
}

impl Kind {
    pub(super) fn stages(&self) -> &[String] {
        match self {
            Self::List(stages) | Self::Table(KindTable { stages, .. }) => stages,
        }
    }

    pub(super) fn time_limit(&self) -> Option<&str> {
        match self {
            Self::List(_) => None,
            Self::Table(table) => table.time_limit.as_deref(),
        }
    }
}

/// One stage. Exactly one of the first six fields is set and says what it is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stage {
    pub builtin: Option<String>,
    pub chat: Option<String>,
    pub transcribe: Option<String>,
    pub embed: Option<String>,
    pub command: Option<Command>,
    pub http: Option<Http>,

    /// The key of the result it writes. The stage's name by default.
    #[serde(rename = "as")]
    pub key: Option<String>,
    /// Whether the result is for people. False keeps it in the bookkeeping.
    pub keep: Option<bool>,
    pub timeout: Option<String>,
    pub category: Option<String>,

    pub audio: Option<bool>,
    pub decode: Option<bool>,
    pub prompt: Option<PathBuf>,
    pub prompt_text: Option<String>,
    pub schema: Option<Schema>,
    pub format: Option<String>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    pub language: Option<String>,
    pub sentences: Option<usize>,
    pub words: Option<usize>,
    pub most: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a command is a line for `sh -c`, or a list: [\"python3\", \"transcribe.py\"]")]
pub(super) enum Command {
    Line(String),
    Words(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a schema is a file, or a table with a JSON schema")]
pub(super) enum Schema {
    File(PathBuf),
    Inline(toml::Table),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Http {
    #[serde(default = "post")]
    pub method: String,
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: Option<String>,
    /// Statuses that count as success. Any 2xx by default.
    #[serde(default)]
    pub expect: Vec<u16>,
    /// Statuses to retry besides the usual ones.
    #[serde(default)]
    pub retry: Vec<u16>,
    /// Statuses that are final, although they are usually retried.
    #[serde(default)]
    pub give_up: Vec<u16>,
}

fn post() -> String {
    "POST".into()
}
