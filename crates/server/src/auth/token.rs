//! Access tokens, and refresh tokens that the database alone cannot make.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::password::random;
use super::settings::Settings;

type Signature = Hmac<Sha256>;

/// How far clocks may be apart.
const LEEWAY_SECONDS: u64 = 30;

/// Signs with the project secret.
pub(super) struct Signer {
    issuer: String,
    lifetime_seconds: u64,
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
    refresh: Signature,
}

/// A token that verified, as far as we look at it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Claims {
    pub role: Option<String>,
    pub sub: Option<Uuid>,
    pub session_id: Option<Uuid>,
}

/// Signed, and until when it holds.
#[derive(Debug)]
pub(super) struct Signed {
    pub token: String,
    pub expires_in: u64,
    pub expires_at: u64,
}

#[derive(Debug, Serialize)]
struct Access<'a> {
    iss: &'a str,
    sub: &'a Value,
    aud: &'a Value,
    exp: u64,
    iat: u64,
    jti: Uuid,
    role: &'a Value,
    email: &'a Value,
    phone: &'a Value,
    app_metadata: &'a Value,
    user_metadata: &'a Value,
    session_id: &'a Value,
    aal: &'static str,
    amr: Value,
    is_anonymous: &'a Value,
}

impl Signer {
    pub fn new(secret: &[u8], settings: &Settings) -> Self {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        // Every service of the project accepts its tokens; whom they are for is the role's matter.
        validation.validate_aud = false;
        // A key of its own: what is signed here can never pass for a JWT.
        let mut refresh = Signature::new_from_slice(secret).expect("a key of any length");
        refresh.update(b"gleaner refresh tokens");
        let key = refresh.finalize().into_bytes();
        Self {
            issuer: format!("{}/auth/v1", settings.base),
            lifetime_seconds: settings.access_token.as_secs(),
            encoding: EncodingKey::from_secret(secret),
            decoding: DecodingKey::from_secret(secret),
            validation,
            refresh: Signature::new_from_slice(&key).expect("a key of any length"),
        }
    }

    /// An access token for what `gleaner.open_session` or `gleaner.refresh_session` returned.
    pub fn sign(&self, session: &Value) -> Result<Signed, jsonwebtoken::errors::Error> {
        let now = unix_now();
        let expires_at = now + self.lifetime_seconds;
        let user = &session["user"];
        let claims = Access {
            iss: &self.issuer,
            sub: &user["id"],
            aud: &user["aud"],
            exp: expires_at,
            iat: now,
            // A renewed token must be another string, also within the second.
            jti: Uuid::new_v4(),
            role: &user["role"],
            email: &user["email"],
            phone: &user["phone"],
            app_metadata: &user["app_metadata"],
            user_metadata: &user["user_metadata"],
            session_id: &session["session_id"],
            aal: "aal1",
            amr: json!([{"method": session["method"], "timestamp": session["signed_in_at"]}]),
            is_anonymous: &user["is_anonymous"],
        };
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)?;
        Ok(Signed { token, expires_in: self.lifetime_seconds, expires_at })
    }

    /// The claims of a token that is ours and has not expired; otherwise what is wrong with it.
    pub fn verify(&self, token: &str) -> Result<Claims, String> {
        let verified = jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation);
        verified.map(|data| data.claims).map_err(|error| match error.kind() {
            ErrorKind::ExpiredSignature => "invalid JWT: token is expired".into(),
            ErrorKind::InvalidSignature => "invalid JWT: signature is invalid".into(),
            _ => "invalid JWT: unable to parse or verify signature".into(),
        })
    }

    /// What the client holds for the public half that the database keeps.
    pub fn refresh_token(&self, public: &str) -> String {
        format!("{public}.{}", URL_SAFE_NO_PAD.encode(self.signature(public).finalize().into_bytes()))
    }

    /// The public half of a refresh token that we signed.
    pub fn read_refresh_token<'a>(&self, token: &'a str) -> Option<&'a str> {
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

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// The public half of a new refresh token.
pub(super) fn new_public_half() -> String {
    URL_SAFE_NO_PAD.encode(random::<16>())
}

/// A token for a link, and the hash of it that is kept.
pub(super) fn new_link_token() -> (String, String) {
    let token = URL_SAFE_NO_PAD.encode(random::<32>());
    let hash = hash_of(&token);
    (token, hash)
}

/// What the database keeps of a link's token.
pub(super) fn hash_of(token: &str) -> String {
    hex::encode(Sha256::digest(token))
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(secret: &[u8]) -> Signer {
        Signer::new(secret, &Settings::new("http://localhost/"))
    }

    #[test]
    fn a_refresh_token_cannot_be_made_from_what_the_database_keeps() {
        let ours = signer(b"our secret");
        let public = new_public_half();
        let token = ours.refresh_token(&public);
        assert_eq!(ours.read_refresh_token(&token), Some(public.as_str()));
        assert_eq!(signer(b"another").read_refresh_token(&token), None);
        let other = ours.refresh_token(&new_public_half());
        let grafted = format!("{public}.{}", other.split_once('.').expect("two halves").1);
        for bad in [public.as_str(), "", ".", &grafted, &format!("{token}x"), &token[..token.len() - 1]] {
            assert_eq!(ours.read_refresh_token(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_renewed_token_is_another_string_within_the_second() -> Result<(), jsonwebtoken::errors::Error> {
        let session = json!({"session_id": Uuid::new_v4(), "user": {"id": Uuid::new_v4(), "role": "authenticated"}});
        let signer = signer(b"our secret");
        let (one, two) = (signer.sign(&session)?, signer.sign(&session)?);
        assert_ne!(one.token, two.token);
        assert_eq!(signer.verify(&one.token).map(|c| c.role), Ok(Some("authenticated".into())));
        Ok(())
    }
}
