//! `basic`: user name and password in the Authorization header. Like `bearer`, it does not cover the content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

use super::{bearer, proof};
use crate::provider::Verified;
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request, Settings, crypt};

#[derive(Debug)]
pub struct Basic;

/// The pairs in `basic_auth` (`username`, `password`, `password_previous`), as a scheme's keys: `username:password`.
pub fn pairs(settings: &Settings) -> Vec<String> {
    let Some(username) = settings.text("basic_auth.username") else { return Vec::new() };
    settings.both("basic_auth.password").into_iter().map(|password| format!("{username}:{password}")).collect()
}

impl Scheme for Basic {
    fn code(&self) -> &'static str {
        "basic"
    }

    fn about(&self) -> &'static str {
        "Authorization: Basic; the secret is username:password, or basic_auth.username and basic_auth.password"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        let mut wrong = proof::secret_missing(keys, "write username:password, or basic_auth.username and basic_auth.password");
        // The first colon ends the user name, whatever follows.
        if keys.secrets().any(|pair| pair.split_once(':').is_none_or(|(name, password)| name.is_empty() || password.is_empty())) {
            wrong.push("secret is no pair: write username:password (the name without a colon)".to_owned());
        }
        wrong
    }

    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal> {
        // Half a pair would accept any caller that knows the user name.
        let whole = |pair: &&str| pair.split_once(':').is_some_and(|(name, password)| !name.is_empty() && !password.is_empty());
        let pairs: Vec<_> = keys.secrets().filter(whole).collect();
        if pairs.is_empty() {
            return Err(Why::Unconfigured.into());
        }
        let given = STANDARD.decode(bearer::credentials(request, "basic")?).map_err(|_| Why::Mismatch)?;
        // Whole pairs are compared: a user name has no colon, so equal texts have equal names and equal passwords.
        if !crypt::any_same_secret(&given, pairs) {
            return Err(Why::Mismatch.into());
        }
        Ok(Verified::default())
    }

    fn sign(&self, keys: &Keys<'_>, _: i64, headers: &mut HeaderMap, _: &[u8]) -> Result<(), String> {
        proof::set_header(headers, "authorization", &format!("Basic {}", STANDARD.encode(keys.current()?)))
    }
}
