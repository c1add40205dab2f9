//! Which settings are secret, and how they are removed from a row and put back.
//!
//! An unknown setting counts as secret, because an existing CRM may use any name for its token.

use gleaner_ingest::Provider;
use gleaner_ingest::providers::COMMON;
use serde_json::{Map, Value};

/// Stored in place of a secret.
pub const MASK: &str = "********";

type Settings = Map<String, Value>;

/// What the name of a setting says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    Public,
    Secret,
    /// An object whose members have a nature of their own (`basic_auth`).
    Branch,
}

fn nature(provider: Option<&dyn Provider>, path: &str) -> Nature {
    let known = || provider.map(|provider| provider.settings()).unwrap_or_default().iter().chain(COMMON);
    let current = path.strip_suffix("_previous").unwrap_or(path);
    if known().any(|setting| setting.name == path && !setting.secret) {
        Nature::Public
    } else if known().any(|setting| setting.secret && (setting.name == path || setting.name == current)) {
        Nature::Secret
    } else if known().any(|setting| setting.name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))) {
        Nature::Branch
    } else {
        Nature::Secret
    }
}

/// Whether the setting must be sealed.
pub(super) fn is_secret(provider: Option<&dyn Provider>, path: &str) -> bool {
    nature(provider, path) == Nature::Secret
}

/// The dotted names of all settings that are present.
pub(super) fn names(settings: &Settings) -> Vec<String> {
    let below = |(name, value): (&String, &Value)| match value {
        Value::Object(members) => names(members).into_iter().map(|below| format!("{name}.{below}")).collect(),
        _ => vec![name.clone()],
    };
    settings.iter().flat_map(below).collect()
}

/// The settings with masks in place of secrets, and the secrets alone in the same shape.
pub(super) fn split(provider: Option<&dyn Provider>, settings: &Settings) -> (Settings, Settings) {
    split_at(provider, settings, "")
}

fn split_at(provider: Option<&dyn Provider>, settings: &Settings, above: &str) -> (Settings, Settings) {
    let (mut masked, mut secrets) = (Settings::new(), Settings::new());
    for (name, value) in settings {
        let path = format!("{above}{name}");
        match (nature(provider, &path), value) {
            // There is nothing to hide, and "no secret" must stay visible as such.
            (_, Value::Null) => {
                masked.insert(name.clone(), Value::Null);
            }
            (Nature::Secret, Value::String(text)) if text.is_empty() => {
                masked.insert(name.clone(), value.clone());
            }
            (Nature::Branch, Value::Object(members)) => {
                let (shown, hidden) = split_at(provider, members, &format!("{path}."));
                masked.insert(name.clone(), shown.into());
                if !hidden.is_empty() {
                    secrets.insert(name.clone(), hidden.into());
                }
            }
            (Nature::Public, _) => {
                masked.insert(name.clone(), value.clone());
            }
            // A branch that is no object is not what its provider expects. It is hidden like any unknown setting.
            (Nature::Secret | Nature::Branch, _) => {
                masked.insert(name.clone(), MASK.into());
                secrets.insert(name.clone(), value.clone());
            }
        }
    }
    (masked, secrets)
}

/// The complete settings: each mask is replaced by its secret. Values written in clear stay, and a mask without a secret is
/// dropped.
pub(super) fn join(provider: Option<&dyn Provider>, config: &Settings, secrets: &Settings) -> Settings {
    join_at(provider, config, secrets, "")
}

fn join_at(provider: Option<&dyn Provider>, config: &Settings, secrets: &Settings, above: &str) -> Settings {
    let mut whole = Settings::new();
    for (name, value) in config {
        let path = format!("{above}{name}");
        match (value, secrets.get(name)) {
            (Value::String(text), Some(secret)) if text == MASK => {
                whole.insert(name.clone(), secret.clone());
            }
            (Value::String(text), None) if text == MASK && nature(provider, &path) != Nature::Public => {}
            (Value::Object(members), Some(Value::Object(hidden))) => {
                whole.insert(name.clone(), join_at(provider, members, hidden, &format!("{path}.")).into());
            }
            (Value::Object(members), None) => {
                whole.insert(name.clone(), join_at(provider, members, &Settings::new(), &format!("{path}.")).into());
            }
            _ => {
                whole.insert(name.clone(), value.clone());
            }
        }
    }
    whole
}

/// The settings of a row, whatever JSON it contains.
pub(super) fn as_settings(config: &Value) -> Settings {
    match config {
        Value::Object(settings) => settings.clone(),
        Value::Null => Settings::new(),
        // JSON encoded twice is a common mistake. Anything else is kept under a name that the checks will report.
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(settings)) => settings,
            _ => Settings::from_iter([("config".to_owned(), config.clone())]),
        },
        other => Settings::from_iter([("config".to_owned(), other.clone())]),
    }
}

/// Nested settings by their dotted names, so that a change of `{"basic_auth": {"password": …}}` does not touch the user
/// name. An object that is a single value for its provider is not split.
pub fn flatten(provider: Option<&dyn Provider>, settings: &Settings) -> Vec<(String, Value)> {
    flatten_at(provider, settings, "")
}

fn flatten_at(provider: Option<&dyn Provider>, settings: &Settings, above: &str) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    for (name, value) in settings {
        let path = format!("{above}{name}");
        match value {
            Value::Object(members) if nature(provider, &path) == Nature::Branch => {
                flat.extend(flatten_at(provider, members, &format!("{path}.")))
            }
            _ => flat.push((path, value.clone())),
        }
    }
    flat
}

/// The setting at a dotted path.
pub(super) fn get<'a>(settings: &'a Settings, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => settings.get(path),
        Some((first, rest)) => get(settings.get(first)?.as_object()?, rest),
    }
}

/// Sets a setting at a dotted path; null removes it. A value in the place of a parent object is replaced by an object.
pub(super) fn put(settings: &mut Settings, path: &str, value: Value) {
    match path.split_once('.') {
        None if value.is_null() => {
            settings.remove(path);
        }
        None => {
            settings.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = settings.entry(first).or_insert_with(|| Settings::new().into());
            if !inner.is_object() {
                *inner = Settings::new().into();
            }
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
                if inner.is_empty() {
                    settings.remove(first);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
