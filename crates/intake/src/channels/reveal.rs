//! Showing secrets to callers that may read the row: administrators and the service key.

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::{Channels, Result};

impl Channels {
    /// The ingestion key in clear.
    pub async fn reveal_key(&self, name_or_id: &str) -> Result<Zeroizing<String>> {
        let opened = self.get(name_or_id).await?;
        Ok(Zeroizing::new(opened.key()?.to_owned()))
    }

    /// The settings with their secrets.
    pub async fn reveal_settings(&self, name_or_id: &str) -> Result<Map<String, Value>> {
        Ok(self.get(name_or_id).await?.channel.settings.as_map().clone())
    }
}
