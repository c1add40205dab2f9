//! The sign-in settings of an operator.

use std::time::Duration;

use super::client::ClientAddress;
use super::mail::Mailer;
use super::strength::Policy;

/// Who may create an account without an administrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signup {
    /// No one: users are added by an administrator.
    #[default]
    Off,
    /// Anyone. The address is not verified.
    Open,
    /// Anyone who follows the link that is sent to the address. Needs a mailer.
    Confirmed,
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// Our address as clients reach it, without a trailing slash: the issuer of tokens, and the base of links.
    pub base: String,
    /// Where users are redirected after following a link, and the only places a link may ask for: URL prefixes, the first of them
    /// the default. Empty: only our own page.
    pub redirects: Vec<String>,
    pub signup: Signup,
    pub password: Policy,
    /// How long an access token is valid. supabase-js treats it as expired 90 seconds early.
    pub access_token: Duration,
    /// How long a used refresh token is still answered with its successor, for a client that lost the first response.
    pub refresh_grace: Duration,
    /// How long the link in an invitation, and in every other mail, is valid.
    pub invite_valid: Duration,
    pub link_valid: Duration,
    /// How the client's address is found. Behind a proxy that is not configured here, all clients share the proxy's address and its
    /// limits.
    pub client: ClientAddress,
    /// How links are sent. Without it only the command line prints them.
    pub mailer: Option<Mailer>,
}

impl Settings {
    /// The defaults, changed by `GLEANER_SIGNUP` (`off`, `open`, `confirmed`), `GLEANER_REDIRECTS` (URLs, separated by commas),
    /// `GLEANER_PASSWORD_…` (see [`Policy`]), `SMTP_URL` and `SMTP_FROM`. The error names the value that is invalid.
    pub fn from_variables(base: impl Into<String>, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variable = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let mut settings = Self::new(base);
        settings.signup = match variable("GLEANER_SIGNUP").as_deref() {
            None | Some("off") => Signup::Off,
            Some("open") => Signup::Open,
            Some("confirmed") => Signup::Confirmed,
            Some(other) => return Err(format!("GLEANER_SIGNUP is off, open or confirmed, not {other:?}")),
        };
        for place in variable("GLEANER_REDIRECTS").unwrap_or_default().split(',').map(str::trim).filter(|place| !place.is_empty()) {
            // A bare scheme would allow every site.
            let host = place.strip_prefix("https://").or_else(|| place.strip_prefix("http://")).unwrap_or_default();
            if host.is_empty() || host.starts_with('/') || !place.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!("GLEANER_REDIRECTS: {place:?} is not the address of a page; write https://app.example.com"));
            }
            settings.redirects.push(place.to_owned());
        }
        settings.password = Policy::from_variables(variable)?;
        settings.mailer = match (variable("SMTP_URL"), variable("SMTP_FROM")) {
            (Some(url), Some(from)) => Some(Mailer::new(&url, &from)?),
            (None, None) => None,
            _ => return Err("SMTP_URL and SMTP_FROM go together: the mail server, and who writes".into()),
        };
        if settings.signup == Signup::Confirmed && settings.mailer.is_none() {
            return Err("GLEANER_SIGNUP=confirmed needs SMTP_URL and SMTP_FROM to send the links".into());
        }
        Ok(settings)
    }

    pub fn new(base: impl Into<String>) -> Self {
        Self {
            base: base.into().trim_end_matches('/').to_owned(),
            redirects: Vec::new(),
            signup: Signup::Off,
            password: Policy::default(),
            access_token: Duration::from_secs(3600),
            refresh_grace: Duration::from_secs(10),
            invite_valid: Duration::from_secs(7 * 24 * 3600),
            link_valid: Duration::from_secs(3600),
            client: ClientAddress::default(),
            mailer: None,
        }
    }
}

#[cfg(test)]
mod tests;
