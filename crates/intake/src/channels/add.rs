//! Adding a channel.

use gleaner_http::begin;
use gleaner_http::database::Error as Database;
use gleaner_ingest::{Channel, Settings, providers};
use serde_json::{Map, Value};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::row::{Opened, take_auto_create};
use super::save::KEPT_FOR;
use super::{Channels, Error, MASK, Result, key, masks};

/// A channel to be added.
#[derive(Debug, Clone, Default)]
pub struct NewChannel {
    pub name: String,
    pub provider_code: String,
    /// Settings, nested as their names say (`{"basic_auth": {"username": …}}`).
    pub settings: Settings,
    /// E-mail address or id of the owner of what arrives.
    pub owner: Option<String>,
    pub auto_create_contacts: bool,
    /// A key that the sender has already, so that its URL stays the same. Otherwise a random key is made.
    pub ingestion_key: Option<Zeroizing<String>>,
}

impl Channels {
    /// Adds a channel. All mistakes are reported at once, and nothing is stored if there is one.
    pub async fn add(&self, new: NewChannel) -> Result<Opened> {
        let mut settings: Map<String, Value> = new.settings.as_map().clone();
        let auto_create = take_auto_create(&mut settings).unwrap_or(new.auto_create_contacts);
        let mut mistakes = check_name(&new.name);
        mistakes.extend(new.ingestion_key.as_deref().and_then(|key| key::check(key)));

        let mut client = self.client().await?;
        let transaction = begin(&mut client, &self.caller).await?;
        let sales_id = match &new.owner {
            Some(owner) => self.resolve_owner(&*transaction, owner).await?.map_err(|mistake| mistakes.push(mistake)).ok(),
            None => None,
        };
        let channel = Channel {
            id: Uuid::new_v4(),
            name: new.name.trim().to_owned(),
            provider_code: new.provider_code,
            is_active: true,
            sales_id,
            auto_create_contacts: auto_create,
            settings: settings.into(),
        };
        mistakes.extend(self.check(&channel));
        if !mistakes.is_empty() {
            return Err(Error::Mistakes(mistakes));
        }
        self.refuse_taken(&*transaction, &channel.name, None).await?;
        let opened = Opened::new(channel, new.ingestion_key.unwrap_or_else(key::generate));
        self.insert(&*transaction, &opened).await?;
        let row = self.find(&*transaction, &opened.channel.id.to_string()).await?;
        transaction.commit().await.map_err(Database::doing("commit"))?;
        self.shared.cache.forget();
        self.open(&row)
    }

    async fn insert(&self, client: &impl GenericClient, opened: &Opened) -> Result<()> {
        let closed = self.close(opened);
        let channel = &opened.channel;
        client
            .query_typed(
                "insert into public.ingestion_providers
                     (id, name, provider_code, sales_id, auto_create_contacts, config, sealed_config, ingestion_key, key_hash, sealed_key, sealed,
                      secrets_expire)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, true,
                         (select coalesce(jsonb_object_agg(n, now() + make_interval(secs => $12)), '{}') from unnest($11::text[]) as n))",
                &[
                    (&channel.id, Type::UUID),
                    (&channel.name, Type::TEXT),
                    (&channel.provider_code, Type::TEXT),
                    (&channel.sales_id, Type::INT8),
                    (&channel.auto_create_contacts, Type::BOOL),
                    (&closed.config, Type::JSONB),
                    (&closed.sealed_config, Type::TEXT),
                    (&closed.ingestion_key, Type::TEXT),
                    (&closed.key_hash, Type::BYTEA),
                    (&closed.sealed_key, Type::TEXT),
                    (&self.endless(opened), Type::TEXT_ARRAY),
                    (&KEPT_FOR.as_secs_f64(), Type::FLOAT8),
                ],
            )
            .await
            .map_err(|error| match error.as_db_error().and_then(|error| error.constraint()) {
                Some("ingestion_providers_key_hash_key" | "ingestion_providers_ingestion_key_key") => {
                    Error::Mistakes(vec!["another channel has this ingestion key; a key belongs to one channel".into()])
                }
                _ => Database::doing("add the channel")(error).into(),
            })?;
        Ok(())
    }

    /// Everything that is wrong with the channel's provider and settings.
    pub(super) fn check(&self, channel: &Channel) -> Vec<String> {
        let Some(provider) = self.provider(&channel.provider_code) else {
            let known: Vec<_> = self.providers().iter().map(|provider| provider.code()).collect();
            return vec![format!("there is no provider {:?}; there are: {}", channel.provider_code, known.join(", "))];
        };
        let mut wrong = masked_without_secret(channel.settings.as_map(), "");
        wrong.extend(providers::check(provider, channel));
        wrong
    }

    /// Why an existing channel cannot work.
    pub(super) fn problems(&self, channel: &Channel) -> Vec<String> {
        let Some(provider) = self.provider(&channel.provider_code) else { return self.check(channel) };
        let mut wrong = masked_without_secret(channel.settings.as_map(), "");
        wrong.extend(providers::problems(provider, channel));
        wrong
    }

    /// Warnings about settings that work. Another program may write settings that are never read; that breaks nothing.
    pub(super) fn cautions(&self, channel: &Channel) -> Vec<String> {
        let Some(provider) = self.provider(&channel.provider_code) else { return Vec::new() };
        let mut known = provider.cautions(channel);
        known.extend(providers::unknown(provider, channel));
        known
    }

    /// Names address channels, so two channels added here never share one. Other writers may still use a name twice; then
    /// channels are distinguished by their ids.
    pub(super) async fn refuse_taken(&self, client: &impl GenericClient, name: &str, myself: Option<Uuid>) -> Result<()> {
        let taken = client
            .query_typed(
                "select id from public.ingestion_providers where name = $1 and id is distinct from $2 limit 1",
                &[(&name, Type::TEXT), (&myself, Type::UUID)],
            )
            .await
            .map_err(Database::doing("look for the name"))?;
        match taken.first() {
            Some(row) => Err(Error::Taken { name: name.to_owned(), id: row.get(0) }),
            None => Ok(()),
        }
    }
}

pub(super) fn check_name(name: &str) -> Vec<String> {
    let name = name.trim();
    if name.is_empty() {
        vec!["the channel needs a name".into()]
    } else if name.chars().count() > 200 || name.chars().any(char::is_control) {
        vec!["the name is for people: one line of at most 200 characters".into()]
    } else if Uuid::parse_str(name).is_ok() {
        vec!["the name looks like an id; people would not find it".into()]
    } else {
        Vec::new()
    }
}

/// A mask given for a secret that does not exist cannot be a value to store.
fn masked_without_secret(settings: &Map<String, Value>, above: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, value) in settings {
        match value {
            Value::String(text) if text == MASK => {
                wrong.push(format!("{above}{name} is {MASK}, which stands for a secret when one is shown; give the secret itself"));
            }
            Value::Object(members) => wrong.extend(masked_without_secret(members, &format!("{above}{name}."))),
            _ => {}
        }
    }
    wrong
}

/// Nests settings that were given one by one with dotted names.
pub fn nest(settings: impl IntoIterator<Item = (String, Value)>) -> Settings {
    let mut map = Map::new();
    for (name, value) in settings {
        masks::put(&mut map, &name, value);
    }
    map.into()
}
