//! Channels: the rows of `ingestion_providers`, with their secrets decrypted and encrypted. One file per act.
//!
//! # Layout
//!
//! - [`Channels`] holds the connection pool, the master keys and a cache of recent look-ups.
//! - `row` reads a row and decrypts it; `masks` separates secret settings from others; `save` encrypts a row and writes it.
//! - `seal` encrypts what other programs wrote in clear; the other files are the acts, named after their verbs.

mod add;
mod by_key;
mod cache;
mod delete;
mod error;
mod find;
mod key;
mod list;
mod masks;
mod owner;
mod pause;
mod prove;
mod refusals;
mod reseal;
mod reveal;
mod rotate;
mod row;
mod save;
mod seal;
mod set;
mod test;
mod url;

use std::sync::Arc;

use deadpool_postgres::Client;
use gleaner_http::Caller;
use gleaner_http::database::Pool;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_ingest::{Provider, providers};

pub use add::{NewChannel, nest};
pub use error::{Error, Result};
pub use list::Summary;
pub use masks::{MASK, flatten};
pub use prove::{CHALLENGE as CHALLENGE_HEADER, PROOF as PROOF_HEADER, Program};
pub use refusals::Refusals;
pub use reseal::Resealed;
pub use row::Opened;
pub use set::Changes;
pub use test::{Addresses, MARK as TEST_MARK, Tested};
pub use url::{WEBHOOK_PATH, WebhookUrl};

use cache::Cache;

/// The channels of one database, as one caller may see and change them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Channels {
    shared: Arc<Shared>,
    caller: Caller,
}

#[derive(Debug)]
struct Shared {
    pool: Pool,
    keys: MasterKeys,
    providers: &'static [&'static dyn Provider],
    cache: Cache,
}

impl Channels {
    pub fn new(pool: Pool, keys: MasterKeys) -> Self {
        Self::with_providers(pool, keys, providers::all())
    }

    /// With other providers, in addition to or instead of the known ones.
    pub fn with_providers(pool: Pool, keys: MasterKeys, providers: &'static [&'static dyn Provider]) -> Self {
        Self { shared: Arc::new(Shared { pool, keys, providers, cache: Cache::default() }), caller: Caller::Ourselves }
    }

    /// The same channels on behalf of a caller: row security decides what they see and may change.
    pub fn on_behalf_of(&self, caller: Caller) -> Self {
        Self { shared: self.shared.clone(), caller }
    }

    pub fn providers(&self) -> &'static [&'static dyn Provider] {
        self.shared.providers
    }

    pub fn provider(&self, code: &str) -> Option<&'static dyn Provider> {
        self.shared.providers.iter().copied().find(|provider| provider.code() == code)
    }

    async fn client(&self) -> Result<Client> {
        Ok(self.shared.pool.get().await.map_err(|error| gleaner_http::database::Error::Connect(error.to_string()))?)
    }
}
