//! The mistakes in a pipeline file, reported all at once, each with its line and what to write instead.

use std::fmt;
use std::path::PathBuf;

/// Why a pipeline file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("read {}: {source}", file.display())]
    Read { file: PathBuf, source: std::io::Error },
    /// The file is not TOML, or has an unknown key.
    #[error("{file}: {source}")]
    Syntax { file: String, source: Box<toml::de::Error> },
    #[error("{} in {file}:\n{}", count(mistakes.len()), bullets(mistakes))]
    Mistakes { file: String, mistakes: Vec<Mistake> },
}

/// One thing to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub line: Option<usize>,
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Collects the mistakes of one text.
#[derive(Debug)]
pub(super) struct Mistakes<'a> {
    text: &'a str,
    pub found: Vec<Mistake>,
}

impl<'a> Mistakes<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, found: Vec::new() }
    }

    pub(super) fn at(&mut self, place: &std::ops::Range<usize>, what: impl Into<String>) {
        let before = self.text.get(..place.start).unwrap_or(self.text);
        self.found.push(Mistake { line: Some(before.matches('\n').count() + 1), what: what.into() });
    }
}

fn count(n: usize) -> String {
    if n == 1 { "1 mistake".to_owned() } else { format!("{n} mistakes") }
}

fn bullets(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(|mistake| format!("  - {mistake}")).collect::<Vec<_>>().join("\n")
}
