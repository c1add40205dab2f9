//! The built-in stages: they work offline, without a model.

use gleaner::Failure;
use serde_json::{Value, json};

use super::text::summary::Length;
use super::text::{clean, entities, facts, keywords, language, next_steps, summary};
use super::{Output, Seen};

/// One built-in stage, with its settings.
#[derive(Debug, Clone)]
pub struct Builtin {
    pub what: What,
    pub languages: Vec<String>,
    pub region: Option<String>,
    pub sentences: Option<usize>,
    pub words: Option<usize>,
    pub most: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Clean,
    Language,
    Keywords,
    Summary,
    Entities,
    NextSteps,
    Facts,
}

impl What {
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("clean", Self::Clean),
        ("language", Self::Language),
        ("keywords", Self::Keywords),
        ("summary", Self::Summary),
        ("entities", Self::Entities),
        ("next_steps", Self::NextSteps),
        ("facts", Self::Facts),
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, what)| *what)
    }

    /// The key of the result it writes.
    pub fn key(self) -> &'static str {
        match self {
            Self::Clean => "transcript",
            Self::Language => "language",
            Self::Keywords => "keywords",
            Self::Summary => "summary",
            Self::Entities => "entities",
            Self::NextSteps => "next_steps",
            Self::Facts => "facts",
        }
    }
}

impl Builtin {
    /// A description of the method that it really uses.
    pub fn method(&self) -> &'static str {
        match self.what {
            What::Clean => "text without quotes, signatures and stray spaces",
            What::Language => "trigrams",
            What::Keywords => "word counts",
            What::Summary => "sentences chosen by word counts",
            What::Entities => "patterns",
            What::NextSteps => "sentences with cue words",
            What::Facts => "a list of what the patterns found",
        }
    }

    /// The number is increased when the stage starts to find something else in the same text.
    pub fn configuration(&self) -> Value {
        json!([self.what.key(), 1, self.languages, self.region, self.sentences, self.words, self.most])
    }

    pub fn input(&self, seen: &Seen<'_>) -> Value {
        match self.what {
            What::Entities | What::NextSteps | What::Facts => json!([seen.text, seen.written.to_rfc3339()]),
            _ => json!(seen.text),
        }
    }

    pub async fn run(&self, seen: &Seen<'_>) -> Result<Output, Failure> {
        // A long text takes a while, and must not block the other tasks of the runtime.
        let (builtin, text, written) = (self.clone(), seen.text.to_owned(), seen.written);
        let found = tokio::task::spawn_blocking(move || builtin.find(&text, written)).await;
        found.map(Output::new).map_err(|error| Failure::new(format!("it stopped: {error}")).category(super::failure::STAGE))
    }

    fn find(&self, text: &str, written: chrono::DateTime<chrono::FixedOffset>) -> Value {
        let language = language::sure(text, &self.languages);
        let region = self.region.as_deref().or(match language {
            Some("de") => Some("DE"),
            Some("en") => Some("US"),
            _ => None,
        });
        match self.what {
            What::Clean => json!(clean::clean(text)),
            What::Language => json!(language::detect(text, &self.languages)),
            What::Keywords => json!(keywords::keywords(text, language, self.most.unwrap_or(8))),
            What::Summary => {
                let usual = Length::default();
                let length = Length { sentences: self.sentences.unwrap_or(usual.sentences), words: self.words.unwrap_or(usual.words) };
                json!(summary::summarise(text, language, length))
            }
            What::Entities => json!(entities::find(text, region, written)),
            What::NextSteps => json!(next_steps::find(text, written, self.most.unwrap_or(10))),
            What::Facts => {
                let found = entities::find(text, region, written);
                json!(facts::facts(&found, &next_steps::find(text, written, self.most.unwrap_or(10)), language))
            }
        }
    }
}
