//! A row as it is stored, and decrypted.

use gleaner_ingest::sealing::Place;
use gleaner_ingest::{Channel, Settings};
use serde_json::{Map, Value};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::masks;
use super::{Channels, Error, Result, key};

/// All columns of a decrypted channel. Times are compared by the database's clock only.
pub(super) const SELECT: &str = "
    select c.id, c.name, c.provider_code, c.is_active, c.sales_id, c.auto_create_contacts, c.config, c.ingestion_key, c.key_hash,
           c.sealed_key, c.sealed_config, c.sealed, c.secrets_expire, c.state, c.state_detail, c.version,
           to_jsonb(c.created_at) #>> '{}' as created_at, to_jsonb(c.changed_at) #>> '{}' as changed_at,
           array(select e.key from jsonb_each_text(c.secrets_expire) as e where e.value::timestamptz <= now()) as expired,
           (select extract(epoch from min(e.value::timestamptz) - now())::float8
            from jsonb_each_text(c.secrets_expire) as e where e.value::timestamptz > now()) as next_expiry,
           (select s.email::text from public.sales as s where s.id = c.sales_id) as owner
    from public.ingestion_providers as c";

/// The stored row. Its secrets are still encrypted, unless another program wrote them in clear.
pub(super) struct Row {
    pub id: Uuid,
    pub name: String,
    pub provider_code: String,
    pub is_active: bool,
    pub sales_id: Option<i64>,
    pub auto_create_contacts: bool,
    pub config: Value,
    pub ingestion_key: String,
    pub key_hash: Option<Vec<u8>>,
    pub sealed_key: Option<String>,
    pub sealed_config: Option<String>,
    pub sealed: bool,
    pub expires: Map<String, Value>,
    pub expired: Vec<String>,
    pub next_expiry: Option<f64>,
    pub state: String,
    pub state_detail: Option<String>,
    pub version: i64,
    pub created_at: String,
    pub changed_at: String,
    pub owner: Option<String>,
}

impl Row {
    pub(super) fn read(row: &tokio_postgres::Row) -> Self {
        Self {
            id: row.get("id"),
            name: row.get("name"),
            provider_code: row.get("provider_code"),
            is_active: row.get("is_active"),
            sales_id: row.get("sales_id"),
            auto_create_contacts: row.get("auto_create_contacts"),
            config: row.get("config"),
            ingestion_key: row.get("ingestion_key"),
            key_hash: row.get("key_hash"),
            sealed_key: row.get("sealed_key"),
            sealed_config: row.get("sealed_config"),
            sealed: row.get("sealed"),
            expires: masks::as_settings(&row.get("secrets_expire")),
            expired: row.get("expired"),
            next_expiry: row.get("next_expiry"),
            state: row.get("state"),
            state_detail: row.get("state_detail"),
            version: row.get("version"),
            created_at: row.get("created_at"),
            changed_at: row.get("changed_at"),
            owner: row.get("owner"),
        }
    }
}

/// A channel with its secrets in clear, and what else is known of it. It exists in memory only.
#[derive(Debug, Clone)]
pub struct Opened {
    pub channel: Channel,
    /// None for a row that was inserted with a mask instead of a key.
    key: Option<Zeroizing<String>>,
    /// The owner's e-mail address, for people.
    pub owner: Option<String>,
    pub state: String,
    pub state_detail: Option<String>,
    /// When previous secrets expire, by the name of the setting.
    pub expires: Map<String, Value>,
    pub created_at: String,
    pub changed_at: String,
    pub(super) version: i64,
}

impl Opened {
    pub(super) fn new(channel: Channel, key: Zeroizing<String>) -> Self {
        Self {
            channel,
            key: Some(key),
            owner: None,
            state: "ready".into(),
            state_detail: None,
            expires: Map::new(),
            created_at: String::new(),
            changed_at: String::new(),
            version: 0,
        }
    }

    /// The ingestion key in clear.
    pub fn key(&self) -> Result<&str> {
        self.key.as_deref().map(String::as_str).ok_or(Error::NoKey)
    }

    pub fn key_mask(&self) -> String {
        self.key.as_deref().map(|key| key::mask(&key::hash(key))).unwrap_or_default()
    }

    pub(super) fn replace_key(&mut self, key: Zeroizing<String>) {
        self.key = Some(key);
    }
}

pub(super) fn place<'a>(row: &'a str, purpose: &'a str) -> Place<'a> {
    Place { table: "ingestion_providers", row, purpose }
}

impl Channels {
    /// The row with its secrets in clear: encrypted ones are decrypted, those written in clear stay as they are, expired
    /// ones are left out.
    pub(super) fn open(&self, row: &Row) -> Result<Opened> {
        let id = row.id.to_string();
        let opened = |sealed: &str, purpose| {
            self.shared.keys.open(sealed, &place(&id, purpose)).map_err(|source| Error::Sealed { name: row.name.clone(), source })
        };
        let key = match &row.sealed_key {
            Some(sealed) => Some(Zeroizing::new(String::from_utf8_lossy(&opened(sealed, "key")?).into_owned())),
            None if key::is_mask(&row.ingestion_key) => None,
            None => Some(Zeroizing::new(row.ingestion_key.clone())),
        };
        let secrets = match &row.sealed_config {
            Some(sealed) => serde_json::from_slice(&opened(sealed, "config")?).unwrap_or_default(),
            None => Map::new(),
        };
        let config = masks::as_settings(&row.config);
        let mut settings = masks::join(self.provider(&row.provider_code), &config, &secrets);
        let mut expires = row.expires.clone();
        // The expiry was set for the secret that was there then, not for a value that was written over it since.
        expires.retain(|name, _| masks::get(&config, name).and_then(Value::as_str) == Some(masks::MASK));
        for name in row.expired.iter().filter(|name| expires.contains_key(*name)) {
            masks::put(&mut settings, name, Value::Null);
        }
        expires.retain(|name, _| !row.expired.contains(name));
        Ok(Opened {
            channel: Channel {
                id: row.id,
                name: row.name.clone(),
                provider_code: row.provider_code.clone(),
                is_active: row.is_active,
                sales_id: row.sales_id,
                auto_create_contacts: take_auto_create(&mut settings).unwrap_or(row.auto_create_contacts),
                settings: Settings::from(settings),
            },
            key,
            owner: row.owner.clone(),
            state: row.state.clone(),
            state_detail: row.state_detail.clone(),
            expires,
            created_at: row.created_at.clone(),
            changed_at: row.changed_at.clone(),
            version: row.version,
        })
    }
}

/// The flag has a column of its own. If it is written among the settings, it moves there.
pub(super) fn take_auto_create(settings: &mut Map<String, Value>) -> Option<bool> {
    let wanted = match settings.get("auto_create_contacts")? {
        Value::Bool(wanted) => *wanted,
        Value::String(text) if text == "true" => true,
        Value::String(text) if text == "false" => false,
        // Not a boolean: left for the checks to report.
        _ => return None,
    };
    settings.remove("auto_create_contacts");
    Some(wanted)
}
