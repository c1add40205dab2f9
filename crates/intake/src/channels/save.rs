//! Encrypting a channel and writing it: only encrypted secrets reach the database.

use std::time::Duration;

use gleaner_http::database::Error as Database;
use gleaner_ingest::Channel;
use serde_json::{Map, Value};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::row::{Opened, place};
use super::{Channels, Result, key, masks};

/// A channel as it is stored.
pub(super) struct Closed {
    pub config: Value,
    pub sealed_config: Option<String>,
    pub ingestion_key: Option<String>,
    pub key_hash: Option<Vec<u8>>,
    pub sealed_key: Option<String>,
}

/// Expiry times for a secret or a key, which are added to the row by the database's clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Ends {
    /// Name of a setting and seconds from now.
    pub secret: Option<(String, f64)>,
    /// How long previous secrets stay valid that were written directly into the settings. A day by default.
    pub previous_secrets: Option<Duration>,
    /// Hash of the previous key and seconds from now; zero ends it at once.
    pub previous_key: Option<([u8; 32], f64)>,
}

/// A previous secret is kept for as long as a sender takes to change. Without an expiry it would be a second password for
/// ever.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(86_400);

impl Channels {
    /// Previous secrets without an expiry.
    pub(super) fn endless(&self, opened: &Opened) -> Vec<String> {
        let (_, secrets) = masks::split(self.provider(&opened.channel.provider_code), opened.channel.settings.as_map());
        let names = masks::names(&secrets).into_iter();
        names.filter(|name| name.ends_with("_previous") && !opened.expires.contains_key(name)).collect()
    }

    pub(super) fn close(&self, opened: &Opened) -> Closed {
        let Channel { id, provider_code, settings, .. } = &opened.channel;
        let id = id.to_string();
        let seal = |plain: &[u8], purpose| self.shared.keys.seal(plain, &place(&id, purpose));
        let (config, secrets) = masks::split(self.provider(provider_code), settings.as_map());
        let secrets = (!secrets.is_empty()).then(|| zeroize::Zeroizing::new(Value::from(secrets).to_string()));
        let key = opened.key().ok();
        let hash = key.map(key::hash);
        Closed {
            config: config.into(),
            sealed_config: secrets.map(|secrets| seal(secrets.as_bytes(), "config")),
            ingestion_key: hash.map(|hash| key::mask(&hash)),
            key_hash: hash.map(|hash| hash.to_vec()),
            sealed_key: key.map(|key| seal(key.as_bytes(), "key")),
        }
    }

    /// Writes the channel if it was not written since it was read. False when another client has written it.
    pub(super) async fn save(&self, client: &impl GenericClient, opened: &Opened, ends: &Ends) -> Result<bool> {
        let closed = self.close(opened);
        let channel = &opened.channel;
        let mut expires: Map<String, Value> = opened.expires.clone();
        // Settings that no longer exist need no expiry.
        expires.retain(|name, _| masks::get(channel.settings.as_map(), name).is_some());
        let expires = Value::from(expires);
        let (endless, kept_for) = (self.endless(opened), ends.previous_secrets.unwrap_or(KEPT_FOR).as_secs_f64());
        let (ending, ending_in) = ends.secret.clone().unzip();
        let (previous, previous_in) = ends.previous_key.unzip();
        let previous = previous.map(|hash| hash.to_vec());
        let saved = client
            .query_typed(
                "update public.ingestion_providers
                 set name = $3, is_active = $4, sales_id = $5, auto_create_contacts = $6, config = $7, sealed_config = $8,
                     ingestion_key = coalesce($9, ingestion_key), key_hash = $10, sealed_key = $11,
                     secrets_expire = (select coalesce(jsonb_object_agg(n, now() + make_interval(secs => $18)), '{}') from unnest($17::text[]) as n)
                                      || $12 || case when $13::text is null then '{}'
                                                  else jsonb_build_object($13, now() + make_interval(secs => $14)) end,
                     previous_key_hash = case when $15::bytea is null then previous_key_hash when $16 > 0 then $15 end,
                     previous_key_expires = case when $15 is null then previous_key_expires
                                                 when $16 > 0 then now() + make_interval(secs => $16) end,
                     sealed = true, version = version + 1
                 where id = $1 and version = $2
                 returning id",
                &[
                    (&channel.id, Type::UUID),
                    (&opened.version, Type::INT8),
                    (&channel.name, Type::TEXT),
                    (&channel.is_active, Type::BOOL),
                    (&channel.sales_id, Type::INT8),
                    (&channel.auto_create_contacts, Type::BOOL),
                    (&closed.config, Type::JSONB),
                    (&closed.sealed_config, Type::TEXT),
                    (&closed.ingestion_key, Type::TEXT),
                    (&closed.key_hash, Type::BYTEA),
                    (&closed.sealed_key, Type::TEXT),
                    (&expires, Type::JSONB),
                    (&ending, Type::TEXT),
                    (&ending_in, Type::FLOAT8),
                    (&previous, Type::BYTEA),
                    (&previous_in, Type::FLOAT8),
                    (&endless, Type::TEXT_ARRAY),
                    (&kept_for, Type::FLOAT8),
                ],
            )
            .await
            .map_err(Database::doing("save the channel"))?;
        Ok(!saved.is_empty())
    }
}
