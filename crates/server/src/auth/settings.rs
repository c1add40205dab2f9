//! What an operator can decide about sign-in.

use std::time::Duration;

use super::client::ClientAddress;
use super::mail::Mailer;

/// Who may make an account by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signup {
    /// Nobody: users are added by an administrator.
    #[default]
    Off,
    /// Whoever comes; the address is believed.
    Open,
    /// Whoever follows the link that is sent to the address. Needs a mailer.
    Confirmed,
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// What clients call us, without a trailing slash: the issuer of tokens, and where links lead.
    pub base: String,
    /// Where people are sent after a link was followed, and the only places a link may ask for: prefixes of URLs, the first of
    /// them the default. Empty: only our own page.
    pub redirects: Vec<String>,
    pub signup: Signup,
    /// Shortest password, in characters.
    pub password_min: usize,
    /// How long an access token lives. supabase-js takes it as over 90 seconds early.
    pub access_token: Duration,
    /// How long a used refresh token is still answered with its successor, for whoever lost the first answer.
    pub refresh_grace: Duration,
    /// How long the link in an invitation, and in everything else, is good.
    pub invite_valid: Duration,
    pub link_valid: Duration,
    /// Who is on the other end. Behind a proxy that is not told, everybody shares the proxy's address and its limits.
    pub client: ClientAddress,
    /// How links are sent; without it only the command line gives them out.
    pub mailer: Option<Mailer>,
}

impl Settings {
    pub fn new(base: impl Into<String>) -> Self {
        Self {
            base: base.into().trim_end_matches('/').to_owned(),
            redirects: Vec::new(),
            signup: Signup::Off,
            password_min: 8,
            access_token: Duration::from_secs(3600),
            refresh_grace: Duration::from_secs(10),
            invite_valid: Duration::from_secs(7 * 24 * 3600),
            link_valid: Duration::from_secs(3600),
            client: ClientAddress::default(),
            mailer: None,
        }
    }
}
