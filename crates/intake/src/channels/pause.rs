//! Pausing a channel, and resuming it.

use super::save::Ends;
use super::{Channels, Opened, Result};

impl Channels {
    /// No request is accepted until the channel is resumed.
    pub async fn pause(&self, name_or_id: &str) -> Result<Opened> {
        self.switch(name_or_id, false).await
    }

    pub async fn resume(&self, name_or_id: &str) -> Result<Opened> {
        self.switch(name_or_id, true).await
    }

    async fn switch(&self, name_or_id: &str, is_active: bool) -> Result<Opened> {
        self.change(name_or_id, |opened| {
            opened.channel.is_active = is_active;
            Ok(Ends::default())
        })
        .await
    }
}
