//! Google's addresses, the costs of its calls, and our retries. Everything has a default and can be configured.

use std::time::Duration;

/// The addresses of Google's services, and the costs of its calls.
#[derive(Debug, Clone)]
pub struct Google {
    /// `GOOGLE_API_BASE`: the Gmail API, without `/gmail/v1`.
    pub api_base: String,
    /// `GOOGLE_TOKEN_URL`: where grants are exchanged and refreshed.
    pub token_url: String,
    /// `GOOGLE_AUTH_URL`: where people consent.
    pub auth_url: String,
    /// `GOOGLE_JWKS_URL`: the keys that sign push notifications.
    pub jwks_url: String,
    pub costs: Costs,
    pub patience: Patience,
}

/// Quota units of each method (`GOOGLE_QUOTA_COSTS`, such as `messages.get=20,history.list=2`). Google changed them in May
/// 2026 and may do so again.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    pub get_profile: u32,
    pub list_history: u32,
    pub list_messages: u32,
    pub get_message: u32,
    pub get_attachment: u32,
    pub watch: u32,
}

/// How failed calls are retried.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The first wait; each one after it is twice as long, with jitter.
    pub first: Duration,
    pub longest: Duration,
    /// The number of calls before giving up until the next poll.
    pub tries: u32,
    /// The time limit for one call.
    pub call: Duration,
}

impl Default for Google {
    fn default() -> Self {
        Self {
            api_base: "https://gmail.googleapis.com".into(),
            token_url: "https://oauth2.googleapis.com/token".into(),
            auth_url: "https://accounts.google.com/o/oauth2/v2/auth".into(),
            jwks_url: "https://www.googleapis.com/oauth2/v3/certs".into(),
            costs: Costs::default(),
            patience: Patience::default(),
        }
    }
}

impl Default for Costs {
    fn default() -> Self {
        Self { get_profile: 1, list_history: 2, list_messages: 5, get_message: 20, get_attachment: 20, watch: 100 }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(64), tries: 7, call: Duration::from_secs(60) }
    }
}

impl Google {
    /// The defaults, overridden by the environment.
    pub fn from_env() -> Result<Self, String> {
        Self::from(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let default = Self::default();
        let url = |name: &str, otherwise: String| match variable(name) {
            None => Ok(otherwise),
            Some(url) if url.starts_with("https://") || url.starts_with("http://") => Ok(url.trim_end_matches('/').to_owned()),
            Some(other) => Err(format!("{name} is a URL such as {otherwise}, not {other:?}")),
        };
        Ok(Self {
            api_base: url("GOOGLE_API_BASE", default.api_base)?,
            token_url: url("GOOGLE_TOKEN_URL", default.token_url)?,
            auth_url: url("GOOGLE_AUTH_URL", default.auth_url)?,
            jwks_url: url("GOOGLE_JWKS_URL", default.jwks_url)?,
            costs: variable("GOOGLE_QUOTA_COSTS").map_or_else(|| Ok(default.costs), |text| Costs::parse(&text))?,
            patience: default.patience,
        })
    }
}

impl Costs {
    fn parse(text: &str) -> Result<Self, String> {
        let mut costs = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || format!("GOOGLE_QUOTA_COSTS: {part:?} is not a method and its units, such as messages.get=20");
            let (method, units) = part.split_once('=').ok_or_else(wrong)?;
            let cost = match method.trim() {
                "getProfile" => &mut costs.get_profile,
                "history.list" => &mut costs.list_history,
                "messages.list" => &mut costs.list_messages,
                "messages.get" => &mut costs.get_message,
                "messages.attachments.get" => &mut costs.get_attachment,
                "watch" => &mut costs.watch,
                _ => return Err(wrong()),
            };
            *cost = units.trim().parse().map_err(|_| wrong())?;
        }
        Ok(costs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_moves_google_and_its_prices() {
        let google = Google::from(|name| match name {
            "GOOGLE_API_BASE" => Some("http://127.0.0.1:9/".into()),
            "GOOGLE_QUOTA_COSTS" => Some("messages.get=5, watch=1".into()),
            _ => None,
        })
        .unwrap();
        assert_eq!(google.api_base, "http://127.0.0.1:9");
        assert_eq!((google.costs.get_message, google.costs.watch, google.costs.list_history), (5, 1, 2));
        assert_eq!(google.token_url, "https://oauth2.googleapis.com/token");
    }

    #[test]
    fn invalid_settings_are_reported_at_the_start() {
        for (name, value) in [("GOOGLE_API_BASE", "gmail"), ("GOOGLE_QUOTA_COSTS", "messages.get"), ("GOOGLE_QUOTA_COSTS", "x=1")] {
            assert!(Google::from(|asked| (asked == name).then(|| value.to_owned())).is_err(), "{name}={value}");
        }
    }
}
