//! Channels for people and scripts: everything except the secrets.

use gleaner_http::begin;
use gleaner_http::database::Error as Database;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::row::{Opened, Row, SELECT};
use super::{Channels, Result, key, masks};

/// A channel in a form that may be shown.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Channel, example = json!({
        "id": "1f0c7a52-0000-4000-8000-000000000001", "name": "Support line", "provider": "generic", "is_active": true,
        "sales_id": null, "owner": null, "auto_create_contacts": false, "ingestion_key": "ik_…3f9a",
        "settings": {"scheme": "none"}, "secrets_expire": {}, "state": "ready", "state_detail": null, "problems": [],
        "cautions": [], "created_at": "2026-01-02T03:04:05Z", "changed_at": "2026-01-02T03:04:05Z"
    }))]
pub struct Summary {
    pub id: Uuid,
    pub name: String,
    pub provider: String,
    pub is_active: bool,
    /// The owner's id.
    #[schema(required)]
    pub sales_id: Option<i64>,
    /// The owner's e-mail address.
    #[schema(required)]
    pub owner: Option<String>,
    pub auto_create_contacts: bool,
    /// The key, masked unless it was just made.
    pub ingestion_key: String,
    /// Secrets are masked.
    pub settings: Map<String, Value>,
    /// When previous secrets expire.
    pub secrets_expire: Map<String, Value>,
    pub state: String,
    #[schema(required)]
    pub state_detail: Option<String>,
    /// Why the channel cannot work as it is: secrets that cannot be decrypted, settings that are wrong.
    pub problems: Vec<String>,
    /// Warnings about settings that work.
    pub cautions: Vec<String>,
    pub created_at: String,
    pub changed_at: String,
}

impl Channels {
    /// All channels the caller may see, by name.
    pub async fn list(&self) -> Result<Vec<Summary>> {
        let mut summaries = Vec::new();
        for row in self.rows().await? {
            let summary = match self.open(&row) {
                Ok(opened) => {
                    self.seal_on_sight(&row, &opened).await;
                    self.summary(&opened)
                }
                Err(error) => self.closed_summary(row, error.to_string()),
            };
            summaries.push(summary);
        }
        Ok(summaries)
    }

    /// All channels of a provider, decrypted. Those that cannot be decrypted are left out and logged.
    pub async fn of_provider(&self, code: &str) -> Result<Vec<Opened>> {
        let mut channels = Vec::new();
        for row in self.rows().await?.into_iter().filter(|row| row.provider_code == code) {
            match self.open(&row) {
                Ok(opened) => {
                    self.seal_on_sight(&row, &opened).await;
                    channels.push(opened);
                }
                Err(error) => tracing::warn!(channel = %row.id, %error, "a channel cannot be opened"),
            }
        }
        Ok(channels)
    }

    async fn rows(&self) -> Result<Vec<Row>> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client, &self.caller).await?;
        let rows =
            transaction.query_typed(&format!("{SELECT} order by c.name, c.id"), &[]).await.map_err(Database::doing("list the channels"))?;
        transaction.commit().await.map_err(Database::doing("commit"))?;
        Ok(rows.iter().map(Row::read).collect())
    }

    /// The channel without its secrets.
    pub fn summary(&self, opened: &Opened) -> Summary {
        let channel = &opened.channel;
        let (settings, _) = masks::split(self.provider(&channel.provider_code), channel.settings.as_map());
        let mut problems = self.problems(channel);
        if opened.key().is_err() {
            problems.push("it has no ingestion key; rotate it to make one".into());
        }
        Summary {
            id: channel.id,
            name: channel.name.clone(),
            provider: channel.provider_code.clone(),
            is_active: channel.is_active,
            sales_id: channel.sales_id,
            owner: opened.owner.clone(),
            auto_create_contacts: channel.auto_create_contacts,
            ingestion_key: opened.key_mask(),
            settings,
            secrets_expire: opened.expires.clone(),
            state: opened.state.clone(),
            state_detail: opened.state_detail.clone(),
            problems,
            cautions: self.cautions(channel),
            created_at: opened.created_at.clone(),
            changed_at: opened.changed_at.clone(),
        }
    }

    /// A channel whose secrets cannot be decrypted. Settings written in clear are left out too.
    fn closed_summary(&self, row: Row, problem: String) -> Summary {
        let (settings, _) = masks::split(self.provider(&row.provider_code), &masks::as_settings(&row.config));
        Summary {
            id: row.id,
            name: row.name,
            provider: row.provider_code,
            is_active: row.is_active,
            sales_id: row.sales_id,
            owner: row.owner,
            auto_create_contacts: row.auto_create_contacts,
            ingestion_key: row.key_hash.map(|hash| key::mask(&hash)).unwrap_or_default(),
            settings,
            secrets_expire: row.expires,
            state: row.state,
            state_detail: row.state_detail,
            problems: vec![problem],
            cautions: Vec::new(),
            created_at: row.created_at,
            changed_at: row.changed_at,
        }
    }
}
