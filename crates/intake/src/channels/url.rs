//! The webhook URL that a sender uses.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Opened, Result};

/// The path of webhooks, the same as that of Supabase's functions.
pub const WEBHOOK_PATH: &str = "/functions/v1/ingest-activity";
/// Without it Twilio does not retry a request it could not deliver: three tries, after every kind of failure.
const TWILIO_OVERRIDES: &str = "#rc=3&rp=all";

/// A webhook's URL. It contains the ingestion key and is just as secret.
#[derive(Clone, Serialize, ToSchema)]
pub struct WebhookUrl {
    /// As it is called, and as signatures cover it.
    pub webhook_url: String,
    /// With the additional options for this provider, to be pasted into its console.
    pub url_with_overrides: String,
}

impl std::fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookUrl")
    }
}

impl Opened {
    /// Under the channel's own base URL if it has one, else under `base`.
    pub fn webhook_url(&self, base: &str) -> Result<WebhookUrl> {
        let base = self.channel.settings.text("public_url").unwrap_or(base);
        let url = url(base, self.key()?);
        let overrides = if self.channel.provider_code == "twilio" { TWILIO_OVERRIDES } else { "" };
        Ok(WebhookUrl { url_with_overrides: format!("{url}{overrides}"), webhook_url: url })
    }
}

pub(super) fn url(base: &str, key: &str) -> String {
    format!("{}{WEBHOOK_PATH}?key={key}", base.trim_end_matches('/'))
}
