//! Replacing secrets, with a time in which both the old and the new one are valid: senders do not change at the same moment
//! as we do.

use std::time::Duration;

use serde_json::Value;
use zeroize::Zeroizing;

use super::save::Ends;
use super::{Channels, Error, MASK, Opened, Result, key, masks};

impl Channels {
    /// Makes a new ingestion key. The old one stays valid for `keep_for`; zero ends it at once.
    pub async fn rotate_key(&self, name_or_id: &str, keep_for: Duration) -> Result<Opened> {
        self.change(name_or_id, |opened| {
            let previous = opened.key().ok().map(|old| (key::hash(old), keep_for.as_secs_f64()));
            opened.replace_key(key::generate());
            Ok(Ends { previous_key: previous, ..Ends::default() })
        })
        .await
    }

    /// Stores a new secret in `setting`. The old one becomes `…_previous` and stays valid for `keep_for`; zero ends it at
    /// once.
    pub async fn rotate_secret(&self, name_or_id: &str, setting: &str, new: Zeroizing<String>, keep_for: Duration) -> Result<Opened> {
        self.change(name_or_id, |opened| {
            let provider = self.provider(&opened.channel.provider_code);
            let mut mistakes = Vec::new();
            if !masks::is_secret(provider, setting) || setting.ends_with("_previous") {
                mistakes.push(format!("{setting} is no secret that can be rotated"));
            }
            if new.is_empty() || *new == MASK {
                mistakes.push(format!("the new {setting} is empty or a mask; give the secret itself"));
            }
            let mut settings = opened.channel.settings.as_map().clone();
            let previous = format!("{setting}_previous");
            let old = masks::get(&settings, setting).cloned().filter(|old| old.as_str() != Some(""));
            if old.as_ref().and_then(Value::as_str) == Some(new.as_str()) {
                mistakes.push(format!("the new {setting} is the one there is"));
            }
            opened.expires.remove(&previous);
            let kept = old.filter(|_| !keep_for.is_zero());
            let ends = Ends { secret: kept.is_some().then(|| (previous.clone(), keep_for.as_secs_f64())), ..Ends::default() };
            masks::put(&mut settings, &previous, kept.unwrap_or(Value::Null));
            masks::put(&mut settings, setting, Value::String(new.to_string()));
            opened.channel.settings = settings.into();
            if mistakes.is_empty() {
                mistakes = self.check(&opened.channel);
            }
            if mistakes.is_empty() { Ok(ends) } else { Err(Error::Mistakes(mistakes)) }
        })
        .await
    }
}
