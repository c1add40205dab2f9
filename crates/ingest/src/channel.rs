//! A channel: one door of one provider, with its settings opened.

use std::fmt;

use serde_json::{Map, Value};
use uuid::Uuid;

/// A row of `ingestion_providers`, with its secrets in clear. Lives in memory only.
#[derive(Debug, Clone)]
pub struct Channel {
    pub id: Uuid,
    pub name: String,
    pub provider_code: String,
    pub is_active: bool,
    /// Owner of what arrives; none when it belongs to nobody.
    pub sales_id: Option<i64>,
    pub auto_create_contacts: bool,
    pub settings: Settings,
}

impl Channel {
    /// Region of numbers written without a country.
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
    /// A setting by name; a dot reaches into an object (`basic_auth.username`).
    pub fn get(&self, name: &str) -> Option<&Value> {
        let mut parts = name.split('.');
        let mut value = self.0.get(parts.next()?)?;
        for part in parts {
            value = value.get(part)?;
        }
        Some(value)
    }

    /// A text that is not empty. An empty secret is no secret: verifiers treat it as missing and fail closed.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The current and the previous form of a secret (`auth_token`, `auth_token_previous`), the empty ones left out.
    /// Whoever opens the channel has already dropped a previous secret that has expired.
    pub fn both<'a>(&'a self, name: &str) -> Vec<&'a str> {
        let previous = format!("{name}_previous");
        [self.text(name), self.text(&previous)].into_iter().flatten().collect()
    }

    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}
