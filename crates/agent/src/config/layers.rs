//! Flags override the environment, which overrides the file, which overrides the defaults. Also records where each value came
//! from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use toml::{Table, Value};

use super::settings::{ALL, Setting};

/// The name of the file in the home.
pub const FILE: &str = "agent.toml";
/// A key with a lower similarity is a different word and not a typo.
const NEAR: f64 = 0.75;

/// Where settings are read from.
#[derive(Debug)]
pub struct Sources {
    pub home: PathBuf,
    /// A file that the user named. Otherwise the one in the home is read, if it exists.
    pub file: Option<PathBuf>,
    /// By key.
    pub flags: Vec<(&'static str, String)>,
    /// The environment. An empty variable counts as not set.
    pub variables: BTreeMap<String, String>,
}

impl Sources {
    /// The file of the home and the environment of this process.
    pub fn of(home: impl Into<PathBuf>) -> Self {
        // Variables that are not valid UTF-8 are not ours.
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
        Self { home: home.into(), file: None, flags: Vec::new(), variables }
    }

    pub(super) fn read(self) -> Result<Layers, Error> {
        let path = self.file.clone().unwrap_or_else(|| self.home.join(FILE));
        let file = match std::fs::read_to_string(&path) {
            Ok(text) => text.parse::<Table>().map_err(|source| Error::Syntax { path: path.clone(), source: Box::new(source) })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.file.is_none() => Table::new(),
            Err(source) => return Err(Error::File { path, source }),
        };
        let mut layers = Layers { path, values: BTreeMap::new(), mistakes: Vec::new() };
        for setting in ALL {
            if let Some(default) = setting.default {
                layers.values.insert(setting.key, (default.to_owned(), Origin::Default));
            }
        }
        layers.add_file("", &file);
        for setting in ALL {
            let set = setting
                .variables
                .iter()
                .find_map(|name| self.variables.get(*name).filter(|text| !text.is_empty()).map(|text| (*name, text)));
            if let Some((name, text)) = set {
                layers.values.insert(setting.key, (text.clone(), Origin::Variable(name)));
            }
        }
        for (key, text) in self.flags {
            layers.values.insert(key, (text, Origin::Flag));
        }
        Ok(layers)
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Flag,
    Variable(&'static str),
    File(PathBuf),
    Default,
    /// It is not set, and there is no default.
    Unset,
}

impl Origin {
    /// The lower the rank, the higher the precedence.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Flag => 0,
            Self::Variable(_) => 1,
            Self::File(_) => 2,
            Self::Default | Self::Unset => 3,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Variable(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Default | Self::Unset => f.write_str("default"),
        }
    }
}

/// A setting with its effective value.
#[derive(Debug, Clone, Serialize)]
pub struct Effective {
    pub key: &'static str,
    /// None if it is not set and there is no default.
    pub value: Option<String>,
    /// A description of what applies in that case.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub otherwise: &'static str,
    pub from: String,
}

/// All sources, merged by precedence.
#[derive(Debug)]
pub struct Layers {
    path: PathBuf,
    values: BTreeMap<&'static str, (String, Origin)>,
    mistakes: Vec<String>,
}

impl Layers {
    fn add_file(&mut self, prefix: &str, table: &Table) {
        for (name, value) in table {
            let key = format!("{prefix}{name}");
            match (Setting::find(&key), value) {
                (None, Value::Table(inner)) if ALL.iter().any(|setting| setting.key.starts_with(&format!("{key}."))) => {
                    self.add_file(&format!("{key}."), inner);
                }
                (None, _) => self.mistakes.push(format!("{}: there is no setting {key:?}{}", self.path.display(), nearest(&key))),
                (Some(setting), value) => match plain(value) {
                    Some(text) => drop(self.values.insert(setting.key, (text, Origin::File(self.path.clone())))),
                    None => self
                        .mistakes
                        .push(format!("{}: {key} is neither a text, a number, true, false nor a list of texts", self.path.display())),
                },
            }
        }
    }

    pub(super) fn origin(&self, key: &str) -> Origin {
        self.values.get(key).map_or(Origin::Unset, |(_, origin)| origin.clone())
    }

    /// The value, if it is set. A value that cannot be read is recorded, and reported with the other mistakes.
    pub(super) fn maybe<T>(&mut self, key: &str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let (text, _) = self.values.get(key)?;
        match read(text.trim()) {
            Ok(value) => Some(value),
            Err(why) => {
                self.mistake(key, why);
                None
            }
        }
    }

    pub(super) fn mistake(&mut self, key: &str, why: impl fmt::Display) {
        let shown = match Setting::find(key) {
            Some(setting) if setting.secret => String::new(),
            _ => self.values.get(key).map(|(text, _)| format!(" = {text:?}")).unwrap_or_default(),
        };
        let from = match self.origin(key) {
            Origin::Flag => format!("--{}", key.replace(['.', '_'], "-")),
            other => other.to_string(),
        };
        self.mistakes.push(format!("{from}: {key}{shown}: {why}"));
    }

    /// A path in the file is relative to the directory of the file.
    pub(super) fn beside(&self, key: &str, path: &Path) -> PathBuf {
        match (self.origin(key), self.path.parent()) {
            (Origin::File(_), Some(folder)) => folder.join(path),
            _ => path.to_owned(),
        }
    }

    pub(super) fn finish(self) -> Result<Vec<Effective>, Error> {
        if !self.mistakes.is_empty() {
            return Err(Error::Mistakes(self.mistakes));
        }
        let shown = |setting: &'static Setting| {
            let value = self.values.get(setting.key).map(|(text, _)| match setting.key {
                "database_url" => gleaner::connect::describe(text),
                _ if setting.secret => "(set)".to_owned(),
                _ => text.clone(),
            });
            let otherwise = if value.is_some() { "" } else { setting.otherwise };
            Effective { key: setting.key, value, otherwise, from: self.origin(setting.key).to_string() }
        };
        Ok(ALL.iter().map(shown).collect())
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(yes) => Some(yes.to_string()),
        Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<Vec<_>>>().map(|words| words.join(",")),
        _ => None,
    }
}

/// The key that was probably meant. The last part alone also matches: `base` for `poll.base`.
fn nearest(key: &str) -> String {
    let likeness = |known: &str| {
        let last = known.rsplit('.').next().unwrap_or(known);
        strsim::jaro_winkler(key, known).max(strsim::jaro_winkler(key, last))
    };
    let best = ALL.iter().map(|setting| (likeness(setting.key), setting.key)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((likeness, known)) if likeness >= NEAR => format!("; did you mean {known:?}?"),
        _ => format!("; there are {}", ALL.iter().map(|setting| setting.key).collect::<Vec<_>>().join(", ")),
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },

    #[error("{}: {source}", path.display())]
    Syntax { path: PathBuf, source: Box<toml::de::Error> },

    /// All mistakes, each with its source.
    #[error("{}", .0.join("\n  "))]
    Mistakes(Vec<String>),
}
