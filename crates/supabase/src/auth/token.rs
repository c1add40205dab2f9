//! Access tokens, and refresh tokens that the database alone cannot create.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gleaner_http::{Caller, Role};
use hmac::{Hmac, Mac as _};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::password::random;
use super::settings::Settings;
use crate::access::Access;

type Signature = Hmac<Sha256>;

/// Signs with the project secret.
#[derive(Debug)]
pub(super) struct Signer {
    access: Access,
    issuer: String,
    lifetime_seconds: u64,
    refresh: Signature,
}

/// The claims of a verified token that are used here.
#[derive(Debug, Clone)]
pub(super) struct Claims {
    pub role: Role,
    pub sub: Option<Uuid>,
    pub session_id: Option<Uuid>,
}

/// A signed token and when it expires.
#[derive(Debug)]
pub(super) struct Signed {
    pub token: String,
    pub expires_in: u64,
    pub expires_at: u64,
}

impl Signer {
    pub(super) fn new(access: Access, settings: &Settings) -> Self {
        // A separate key, which only the holder of the secret can derive: a token signed for this purpose and never sent.
        let purpose = Map::from_iter([("purpose".to_owned(), Value::from("gleaner: key of refresh tokens"))]);
        let key = Sha256::digest(access.sign(&purpose));
        Self {
            issuer: format!("{}/auth/v1", settings.base),
            lifetime_seconds: settings.access_token.as_secs(),
            refresh: Signature::new_from_slice(&key).expect("a key of any length"),
            access,
        }
    }

    /// An access token for what `gleaner.open_session` or `gleaner.refresh_session` returned.
    pub(super) fn sign(&self, session: &Value) -> Signed {
        let now = unix_now();
        let expires_at = now + self.lifetime_seconds;
        let user = &session["user"];
        let mut claims = Map::new();
        for (name, value) in [
            ("iss", Value::from(self.issuer.clone())),
            ("exp", expires_at.into()),
            ("iat", now.into()),
            // A renewed token must be a different string, also within the same second.
            ("jti", Uuid::new_v4().to_string().into()),
            ("sub", user["id"].clone()),
            ("session_id", session["session_id"].clone()),
            ("aal", "aal1".into()),
            ("amr", json!([{"method": session["method"], "timestamp": session["signed_in_at"]}])),
        ] {
            claims.insert(name.into(), value);
        }
        for name in ["aud", "role", "email", "phone", "app_metadata", "user_metadata", "is_anonymous"] {
            claims.insert(name.into(), user[name].clone());
        }
        Signed { token: self.access.sign(&claims), expires_in: self.lifetime_seconds, expires_at }
    }

    /// The claims of a token that we signed and that has not expired; otherwise what is wrong with it.
    pub(super) fn verify(&self, token: &str) -> Result<Claims, String> {
        let Caller::Token { role, claims } = self.access.verify(token).map_err(|refused| format!("invalid JWT: {}", refused.message))?
        else {
            return Err("invalid JWT".into());
        };
        if !claims.contains_key("exp") {
            return Err("invalid JWT: it never expires".into());
        }
        let id = |name: &str| match claims.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                value.as_str().and_then(|text| text.parse().ok()).map(Some).ok_or_else(|| format!("invalid claim: {name} must be a UUID"))
            }
        };
        Ok(Claims { role, sub: id("sub")?, session_id: id("session_id")? })
    }

    /// The refresh token that the client holds, from the public half that the database stores.
    pub(super) fn refresh_token(&self, public: &str) -> String {
        format!("{public}.{}", URL_SAFE_NO_PAD.encode(self.signature(public).finalize().into_bytes()))
    }

    /// The public half of a refresh token that we signed.
    pub(super) fn read_refresh_token<'a>(&self, token: &'a str) -> Option<&'a str> {
        let (public, signature) = token.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // Compares in constant time.
        self.signature(public).verify_slice(&signature).ok()?;
        Some(public)
    }

    fn signature(&self, public: &str) -> Signature {
        let mut signature = self.refresh.clone();
        signature.update(public.as_bytes());
        signature
    }
}

/// The public half of a new refresh token.
pub(super) fn new_public_half() -> String {
    URL_SAFE_NO_PAD.encode(random::<16>())
}

/// A token for a link, and its hash, which is what the database stores.
pub(super) fn new_link_token() -> (String, String) {
    let token = URL_SAFE_NO_PAD.encode(random::<32>());
    let hash = hash_of(&token);
    (token, hash)
}

/// A code of six digits, to be typed in.
pub(super) fn new_code() -> String {
    format!("{:06}", u64::from_le_bytes(random::<8>()) % 1_000_000)
}

/// The hash of a code that the database stores. The same code is given to many, so the address belongs to it.
pub(super) fn code_hash(email: &str, code: &str) -> String {
    hash_of(&format!("code {email} {code}"))
}

/// The hash of a link's token that the database stores.
pub(super) fn hash_of(token: &str) -> String {
    hex::encode(Sha256::digest(token))
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
