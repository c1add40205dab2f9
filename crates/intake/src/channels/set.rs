//! Changing a channel.

use std::time::Duration;

use gleaner_http::begin;
use gleaner_http::database::Error as Database;
use serde_json::Value;

use super::add::check_name;
use super::row::take_auto_create;
use super::save::Ends;
use super::{Channels, Error, MASK, Opened, Result, masks};

/// What to change. Fields that are left out stay as they are.
#[derive(Clone, Default)]
pub struct Changes {
    pub name: Option<String>,
    /// E-mail address or id. `Some(None)` removes the owner.
    pub owner: Option<Option<String>>,
    pub is_active: Option<bool>,
    pub auto_create_contacts: Option<bool>,
    /// Settings by their dotted names. Null removes one; the mask of a secret keeps it.
    pub settings: Vec<(String, Value)>,
    /// How long a previous secret among them stays valid. A day by default.
    pub keep_for: Option<Duration>,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.settings.iter().map(|(name, _)| name).collect();
        f.debug_struct("Changes").field("name", &self.name).field("settings", &names).finish_non_exhaustive()
    }
}

impl Channels {
    /// Changes a channel. All mistakes are reported at once, and nothing is stored if there is one.
    pub async fn set(&self, name_or_id: &str, changes: Changes) -> Result<Opened> {
        let mut mistakes = changes.name.as_deref().map(check_name).unwrap_or_default();
        let owner = self.prepare(name_or_id, &changes, &mut mistakes).await?;
        self.change(name_or_id, |opened| {
            let provider = self.provider(&opened.channel.provider_code);
            let channel = &mut opened.channel;
            let mut settings = channel.settings.as_map().clone();
            for (name, value) in &changes.settings {
                let kept = value.as_str() == Some(MASK) && masks::is_secret(provider, name);
                if !kept {
                    masks::put(&mut settings, name, value.clone());
                    // The expiry belonged to the old secret.
                    opened.expires.remove(name);
                }
            }
            if let Some(wanted) = take_auto_create(&mut settings).or(changes.auto_create_contacts) {
                channel.auto_create_contacts = wanted;
            }
            channel.settings = settings.into();
            if let Some(name) = &changes.name {
                channel.name = name.trim().to_owned();
            }
            channel.is_active = changes.is_active.unwrap_or(channel.is_active);
            if let Some(sales_id) = owner {
                channel.sales_id = sales_id;
            }
            let mut mistakes = mistakes.clone();
            // A caller that renames or pauses a channel must not be stopped by existing mistakes in its settings.
            if !changes.settings.is_empty() {
                mistakes.extend(self.check(channel));
            }
            if mistakes.is_empty() {
                Ok(Ends { previous_secrets: changes.keep_for, ..Ends::default() })
            } else {
                Err(Error::Mistakes(mistakes))
            }
        })
        .await
    }

    /// The checks that need other rows: whether the name is free, and who the owner is.
    async fn prepare(&self, name_or_id: &str, changes: &Changes, mistakes: &mut Vec<String>) -> Result<Option<Option<i64>>> {
        if changes.name.is_none() && changes.owner.is_none() {
            return Ok(None);
        }
        let mut client = self.client().await?;
        let transaction = begin(&mut client, &self.caller).await?;
        let row = self.find(&*transaction, name_or_id).await?;
        if let Some(name) = &changes.name {
            self.refuse_taken(&*transaction, name.trim(), Some(row.id)).await?;
        }
        let owner = match &changes.owner {
            Some(Some(owner)) => {
                let found = self.resolve_owner(&*transaction, owner).await?;
                found.map_err(|mistake| mistakes.push(mistake)).ok().map(Some)
            }
            Some(None) => Some(None),
            None => None,
        };
        transaction.commit().await.map_err(Database::doing("commit"))?;
        Ok(owner)
    }
}
