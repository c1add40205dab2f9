//! Push notifications: requested when the channel has a topic, and renewed long before they expire.

use std::sync::Arc;

use gleaner_ingest::Channel;

use super::Gmail;
use super::error::Result;
use super::ledger::{self, Account};

/// A watch lasts a week; Google advises to renew it daily.
const RENEW_BELOW_SECONDS: f64 = 6.0 * 24.0 * 3600.0;

impl Gmail {
    /// Renews the watch if that is due. A mailbox without push notifications is still polled, so an error here is not
    /// fatal.
    pub(super) async fn keep_watched(&self, channel: &Arc<Channel>, account: &Account) {
        let Some(topic) = channel.settings.text("topic") else { return };
        if account.watched_for.is_some_and(|seconds| seconds > RENEW_BELOW_SECONDS) {
            return;
        }
        if let Err(error) = self.watch(channel, topic).await {
            tracing::warn!(channel = %channel.name, %error, "Google does not send hints by push; the mailbox is polled");
        }
    }

    async fn watch(&self, channel: &Arc<Channel>, topic: &str) -> Result<()> {
        let expires_ms = self.mailbox(channel.clone()).watch(topic).await?;
        let client = self.pool.get().await?;
        ledger::keep_watch(&**client, channel.id, expires_ms).await
    }
}
