//! The address a sender is given.

use serde::Serialize;

use super::{Opened, Result};

/// Where webhooks arrive.
pub const DOOR: &str = "/functions/v1/ingest-activity";
/// Without it Twilio does not repeat a request it could not deliver: three tries, after every kind of failure.
const TWILIO_OVERRIDES: &str = "#rc=3&rp=all";

/// A webhook's URL. Holds the ingestion key: as secret as that.
#[derive(Clone, Serialize)]
pub struct WebhookUrl {
    /// As it is called, and as signatures cover it.
    pub webhook_url: String,
    /// With what this provider should be told besides, to be pasted into its console.
    pub url_with_overrides: String,
}

impl std::fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookUrl")
    }
}

impl Opened {
    /// Under the channel's own base where it has one, else under `base`.
    pub fn webhook_url(&self, base: &str) -> Result<WebhookUrl> {
        let base = self.channel.settings.text("public_url").unwrap_or(base);
        let url = url(base, self.key()?);
        let overrides = if self.channel.provider_code == "twilio" { TWILIO_OVERRIDES } else { "" };
        Ok(WebhookUrl { url_with_overrides: format!("{url}{overrides}"), webhook_url: url })
    }
}

pub(super) fn url(base: &str, key: &str) -> String {
    format!("{}{DOOR}?key={key}", base.trim_end_matches('/'))
}
