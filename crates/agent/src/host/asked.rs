//! What an app asks for: the payload of `SUPABASE_CONFIG`. It is checked strictly, because it decides where our requests go.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::app::web_address;
use super::{Error, token};

const LONGEST_NAME: usize = 64;
const LONGEST_KEY: usize = 4096;
const LONGEST_FILTER: usize = 256;
const MOST_TABLES: usize = 32;

/// Where an app's work is, and which tables and rows it covers.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Place {
    pub app_name: String,
    pub url: String,
    pub anon_key: String,
    pub tables: Vec<String>,
    #[serde(default)]
    pub filters: BTreeMap<String, String>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place")
            .field("app_name", &self.app_name)
            .field("url", &self.url)
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    payload: Place,
}

/// A request for consent that the user has not answered yet.
#[derive(Debug, Clone)]
pub struct Proposal {
    pub id: String,
    pub place: Place,
}

impl Proposal {
    pub fn new(place: Place) -> Self {
        Self { id: token::random(), place }
    }
}

impl Place {
    /// Reads a message of an app. The error is for the app's developer, and says which field is wrong.
    pub fn read(message: Value) -> Result<Self, Error> {
        let message: Message = serde_json::from_value(message).map_err(|error| invalid(format!("SUPABASE_CONFIG: {error}")))?;
        if message.kind != "SUPABASE_CONFIG" {
            return Err(invalid("type: expected SUPABASE_CONFIG"));
        }
        let mut place = message.payload;
        check_name(&place.app_name)?;
        let url = web_address(&place.url).map_err(|error| invalid(format!("payload.url: {error}")))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("payload.url: the URL of a project has neither ? nor #"));
        }
        place.url = url.as_str().trim_end_matches('/').to_owned();
        check_key(&place.anon_key)?;
        check_tables(&place.tables)?;
        check_filters(&place.tables, &place.filters)?;
        Ok(place)
    }

    /// The fields that have changed since the user consented to `before`, by their names in the message.
    pub fn changes(&self, before: &Self) -> Vec<&'static str> {
        let fields = [
            ("appName", self.app_name == before.app_name),
            ("url", self.url == before.url),
            ("anonKey", self.anon_key == before.anon_key),
            ("tables", self.tables == before.tables),
            ("filters", self.filters == before.filters),
        ];
        fields.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }

    /// For display: never contains the whole key.
    pub fn shown(&self) -> Value {
        json!({"appName": self.app_name, "url": self.url, "anonKey": masked(&self.anon_key), "tables": self.tables, "filters": self.filters})
    }
}

fn invalid(why: impl Into<String>) -> Error {
    Error::Invalid(why.into())
}

/// Enough to distinguish two keys, and too little to use one.
fn masked(key: &str) -> String {
    if key.len() < 24 { "…".to_owned() } else { format!("{}…{}", &key[..6], &key[key.len() - 4..]) }
}

fn check_name(name: &str) -> Result<(), Error> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_. ".contains(letter);
    if name.trim().is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
        return Err(invalid(format!("payload.appName: 1 to {LONGEST_NAME} letters, digits, spaces, dots, - and _")));
    }
    Ok(())
}

fn check_key(key: &str) -> Result<(), Error> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if key.is_empty() || key.len() > LONGEST_KEY || !key.chars().all(fits) {
        return Err(invalid("payload.anonKey: the project's anon or publishable key"));
    }
    // A secret key that gives full access must not be in a page.
    let claims = key.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let claims: Value = claims.and_then(|claims| serde_json::from_slice(&claims).ok()).unwrap_or_default();
    if key.starts_with("sb_secret_") || claims["role"].as_str().is_some_and(|role| role != "anon") {
        return Err(invalid("payload.anonKey: this is not an anon key; a page must never hold a secret one"));
    }
    Ok(())
}

fn check_tables(tables: &[String]) -> Result<(), Error> {
    if tables.is_empty() || tables.len() > MOST_TABLES {
        return Err(invalid(format!("payload.tables: 1 to {MOST_TABLES} tables")));
    }
    for (n, table) in tables.iter().enumerate() {
        let is_name = table.split('.').count() <= 2 && table.split('.').all(is_identifier);
        if !is_name || tables[..n].contains(table) {
            return Err(invalid(format!("payload.tables[{n}]: the name of a table, each once")));
        }
    }
    Ok(())
}

fn is_identifier(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (1..=63).contains(&name.len()) && name.chars().all(fits) && !name.starts_with(|letter: char| letter.is_ascii_digit())
}

/// In Supabase's syntax: `processing_status=eq.raw`.
fn check_filters(tables: &[String], filters: &BTreeMap<String, String>) -> Result<(), Error> {
    const OPERATORS: [&str; 7] = ["eq", "neq", "lt", "lte", "gt", "gte", "in"];
    for (table, filter) in filters {
        if !tables.contains(table) {
            return Err(invalid(format!("payload.filters: {:?} is not among the tables", cut(table))));
        }
        let parts = filter.split_once('=').and_then(|(column, test)| Some((column, test.split_once('.')?)));
        let fits = parts.is_some_and(|(column, (operator, value))| {
            is_identifier(column) && OPERATORS.contains(&operator) && !value.is_empty() && !value.chars().any(char::is_control)
        });
        if !fits || filter.len() > LONGEST_FILTER {
            return Err(invalid(format!("payload.filters.{table}: a filter looks like processing_status=eq.raw")));
        }
    }
    Ok(())
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests;
