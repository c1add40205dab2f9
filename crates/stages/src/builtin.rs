//! The built-in stages: they work offline, without a model.

use gleaner::Failure;
use serde_json::{Value, json};

use super::text::summary::Length;
use super::text::{blocks, clean, context_items, entities, facts, keywords, language, next_steps, relationships, summary};
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
    Blocks,
    ContextItems,
    Relationships,
    Document,
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
        ("blocks", Self::Blocks),
        ("context_items", Self::ContextItems),
        ("relationships", Self::Relationships),
        ("document", Self::Document),
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, what)| *what)
    }

    /// The key of the result it writes.
    pub fn key(self) -> &'static str {
        match self {
            Self::Clean | Self::Document => "transcript",
            Self::Language => "language",
            Self::Keywords => "keywords",
            Self::Summary => "summary",
            Self::Entities => "entities",
            Self::NextSteps => "next_steps",
            Self::Facts => "facts",
            Self::Blocks => "blocks",
            Self::ContextItems => "context_items",
            Self::Relationships => "relationships",
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
            What::Blocks => "sentences with cue words, and those chosen by word counts",
            What::ContextItems => "patterns, capitalized words, headings and word counts",
            What::Relationships => "names in the same sentence",
            What::Document => "the text of the file",
        }
    }

    /// The number is increased when the stage starts to find something else in the same text.
    pub fn configuration(&self) -> Value {
        json!([self.what.key(), 1, self.languages, self.region, self.sentences, self.words, self.most])
    }

    pub fn input(&self, seen: &Seen<'_>) -> Value {
        match self.what {
            What::Document => json!(seen.record.map(|record| &record["file_sha256"])),
            What::Entities | What::NextSteps | What::Facts | What::ContextItems => json!([seen.text, seen.written.to_rfc3339()]),
            What::Relationships => json!([seen.text, seen.results.get("blocks"), seen.results.get("context_items")]),
            _ => json!(seen.text),
        }
    }

    pub async fn run(&self, seen: &Seen<'_>) -> Result<Output, Failure> {
        if self.what == What::Document {
            return super::document::run(seen).await;
        }
        // A long text takes a while, and must not block the other tasks of the runtime.
        let (builtin, text, written) = (self.clone(), seen.text.to_owned(), seen.written);
        let earlier = |key: &str| seen.results.get(key).cloned().unwrap_or(Value::Null);
        // Only connections depend on earlier results.
        let earlier = (self.what == What::Relationships).then(|| (earlier("blocks"), earlier("context_items")));
        let found = tokio::task::spawn_blocking(move || match earlier {
            Some((blocks, items)) => builtin.connect(&text, blocks, items),
            None => builtin.find(&text, written),
        })
        .await;
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
            What::Blocks => json!(blocks::find(text, language, self.most.unwrap_or(24))),
            What::ContextItems => json!(context_items::find(text, language, region, written, self.most.unwrap_or(40))),
            What::Relationships => self.connect(text, Value::Null, Value::Null),
            // Read from the file, not from the text.
            What::Document => Value::Null,
        }
    }

    /// Connects what earlier stages found, built in or not. What does not look like a block or an entity is left out.
    fn connect(&self, text: &str, blocks: Value, items: Value) -> Value {
        let (blocks, items) = (read::<relationships::Block>(blocks), read::<relationships::Item>(items));
        json!(relationships::find(text, &blocks, &items, self.most.unwrap_or(120)))
    }
}

fn read<T: serde::de::DeserializeOwned>(list: Value) -> Vec<T> {
    let Value::Array(list) = list else { return Vec::new() };
    list.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect()
}
