//! A channel: one webhook endpoint of one provider, with its settings decrypted.

use std::fmt;

use serde_json::{Map, Value};
use uuid::Uuid;

/// A row of `ingestion_providers`, with its secrets decrypted. Lives in memory only.
#[derive(Debug, Clone)]
pub struct Channel {
    pub id: Uuid,
    pub name: String,
    pub provider_code: String,
    pub is_active: bool,
    /// Owner of what arrives; `None` when it has no owner.
    pub sales_id: Option<i64>,
    pub auto_create_contacts: bool,
    pub settings: Settings,
}

impl Channel {
    /// Region of phone numbers written without a country code.
    pub fn default_region(&self) -> &str {
        self.settings.text("default_region").unwrap_or("US")
    }
}

/// A provider's settings, secrets included; never printed.
#[derive(Clone, Default)]
pub struct Settings(Map<String, Value>);

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl From<Map<String, Value>> for Settings {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

impl Settings {
    /// A setting by name. A dot selects a field of an object (`basic_auth.username`).
    pub fn get(&self, name: &str) -> Option<&Value> {
        let mut parts = name.split('.');
        let mut value = self.0.get(parts.next()?)?;
        for part in parts {
            value = value.get(part)?;
        }
        Some(value)
    }

    /// A text that is not empty. An empty secret counts as missing: verifiers then fail closed.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The current and the previous value of a secret (`auth_token`, `auth_token_previous`), without empty ones. A previous secret
    /// that has expired was already dropped when the channel was opened.
    pub fn both<'a>(&'a self, name: &str) -> Vec<&'a str> {
        let previous = format!("{name}_previous");
        [self.text(name), self.text(&previous)].into_iter().flatten().collect()
    }

    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}
