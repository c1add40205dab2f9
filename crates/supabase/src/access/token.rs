//! Tokens: project keys, and the access tokens of signed-in users.

use std::time::{SystemTime, UNIX_EPOCH};

use gleaner_http::{Caller, Role, WireError};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header, encode};
use serde_json::{Map, Value, json};

use super::Access;

/// The clock difference that is tolerated, as in PostgREST.
const LEEWAY_SECONDS: u64 = 30;
/// Project keys are the same each time they are printed, so all of them are issued on 1 January 2026 and expire ten years later.
const KEYS_ISSUED: u64 = 1_767_225_600;
const KEYS_EXPIRE: u64 = 2_082_758_400;

impl Access {
    /// The key of the project for a role: `ANON_KEY`, `SERVICE_ROLE_KEY`.
    pub fn project_key(&self, role: Role) -> String {
        let claims = json!({"iss": "gleaner", "role": role.name(), "iat": KEYS_ISSUED, "exp": KEYS_EXPIRE});
        self.sign(claims.as_object().expect("an object"))
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Map<String, Value>) -> String {
        encode(&Header::new(Algorithm::HS256), claims, &self.keys.signing).expect("JSON claims and a secret always make a token")
    }

    /// Verifies a token and returns its caller.
    pub fn verify(&self, token: &str) -> Result<Caller, WireError> {
        // Only our own algorithm is accepted: a token may not choose how it is verified.
        let mut rules = Validation::new(Algorithm::HS256);
        rules.leeway = LEEWAY_SECONDS;
        rules.validate_nbf = true;
        rules.validate_aud = false;
        rules.required_spec_claims.clear();
        // The header is decoded first: an unknown algorithm there is a different error from bad claims.
        decode_header(token).map_err(|_| WireError::token("JWT could not be decoded"))?;
        let claims = decode::<Map<String, Value>>(token, &self.keys.verifying, &rules).map_err(|error| match error.kind() {
            ErrorKind::ExpiredSignature => WireError::claims("JWT expired"),
            ErrorKind::ImmatureSignature => WireError::claims("JWT not yet valid"),
            ErrorKind::InvalidClaimFormat(_) | ErrorKind::Json(_) => WireError::claims("Parsing claims failed"),
            ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => WireError::token("Wrong or unsupported encoding algorithm"),
            ErrorKind::InvalidSignature => WireError::token("No suitable key or wrong key type"),
            _ => WireError::token("JWT could not be decoded"),
        })?;
        check_times(&claims.claims)?;
        let role = match claims.claims.get("role").map(|role| role.as_str()) {
            Some(Some(name)) => {
                Role::named(name).ok_or_else(|| WireError::claims("the token names a role that is not one of this project's"))?
            }
            Some(None) => return Err(WireError::claims("Parsing claims failed")),
            None => Role::Anon,
        };
        let mut claims = claims.claims;
        // Policies read the role from the claims, so the claims always contain it.
        claims.insert("role".into(), role.name().into());
        Ok(Caller::Token { role, claims })
    }
}

/// Checks what the library does not: times that are not numbers, and tokens issued in the future.
fn check_times(claims: &Map<String, Value>) -> Result<(), WireError> {
    for name in ["exp", "nbf", "iat"] {
        if claims.get(name).is_some_and(|value| !value.is_number()) {
            return Err(WireError::claims("Parsing claims failed"));
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    match claims.get("iat").and_then(Value::as_f64) {
        Some(issued) if issued > (now + LEEWAY_SECONDS) as f64 => Err(WireError::claims("JWT issued at future")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
