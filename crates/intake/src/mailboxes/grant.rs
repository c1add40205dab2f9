//! A person's grant: a refresh token, and the current access token.

use std::fmt;
use std::time::{Duration, SystemTime};

use gleaner_ingest::Channel;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// The setting `oauth_token`, decrypted. Never printed.
#[derive(Clone)]
pub(super) struct Grant {
    pub refresh_token: Zeroizing<String>,
    pub access: Option<Access>,
}

/// An access token and when to replace it.
#[derive(Clone)]
pub(super) struct Access {
    pub token: Zeroizing<String>,
    /// When four fifths of its lifetime are over.
    pub refresh_at: SystemTime,
    pub expires_at: SystemTime,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Grant")
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("refresh_at", &self.refresh_at).finish_non_exhaustive()
    }
}

impl Grant {
    /// We store it as an object. People set it as the refresh token alone, or as the object in text form.
    pub(super) fn of(channel: &Channel) -> Option<Self> {
        let value = channel.settings.get("oauth_token")?;
        let parsed;
        let object = match value {
            Value::String(text) if text.trim_start().starts_with('{') => {
                parsed = serde_json::from_str::<Value>(text).ok()?;
                &parsed
            }
            Value::String(text) if !text.trim().is_empty() => {
                return Some(Self { refresh_token: Zeroizing::new(text.trim().to_owned()), access: None });
            }
            other => other,
        };
        let refresh_token = object.get("refresh_token")?.as_str().filter(|text| !text.is_empty())?;
        Some(Self { refresh_token: Zeroizing::new(refresh_token.to_owned()), access: Access::stored(object) })
    }

    /// Identifies a grant where the token itself must not be written.
    pub(super) fn fingerprint(&self) -> String {
        hex::encode(&Sha256::digest(self.refresh_token.as_bytes())[..16])
    }

    /// For the setting `oauth_token`.
    pub(super) fn to_setting(&self) -> Value {
        let mut object = json!({"refresh_token": self.refresh_token.as_str()});
        if let Some(access) = &self.access {
            object["access_token"] = json!(access.token.as_str());
            object["expires_at"] = json!(unix(access.expires_at));
            object["refresh_at"] = json!(unix(access.refresh_at));
        }
        object
    }
}

impl Access {
    /// From the response of the token endpoint, counted from now.
    pub(super) fn granted(token: &str, seconds: u64) -> Self {
        let life = Duration::from_secs(seconds.min(24 * 3600));
        let now = SystemTime::now();
        Self { token: Zeroizing::new(token.to_owned()), refresh_at: now + life.mul_f64(0.8), expires_at: now + life }
    }

    fn stored(object: &Value) -> Option<Self> {
        let token = object.get("access_token")?.as_str().filter(|text| !text.is_empty())?;
        let time = |name: &str| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(object.get(name)?.as_u64()?.min(1 << 40)));
        let expires_at = time("expires_at")?;
        // Written by another program: assume a token of one hour, a fifth of which is twelve minutes.
        let refresh_at = time("refresh_at").unwrap_or(expires_at - Duration::from_secs(12 * 60));
        Some(Self { token: Zeroizing::new(token.to_owned()), refresh_at, expires_at })
    }

    pub(super) fn is_fresh(&self) -> bool {
        SystemTime::now() < self.refresh_at
    }
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
