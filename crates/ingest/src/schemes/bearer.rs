//! `bearer`: a token in the Authorization header. It authenticates the sender but does not cover the content; TLS does that.

use http::HeaderMap;

use super::proof;
use crate::provider::Verified;
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request, crypt};

#[derive(Debug)]
pub struct Bearer;

/// The digest of a configured token. An operator who does not want to store the token itself writes `sha256:` and its digest.
fn digest(secret: &str) -> Option<[u8; 32]> {
    match secret.strip_prefix("sha256:") {
        Some(hex) => proof::lower_hex(hex),
        None => Some(crypt::sha256(secret.as_bytes())),
    }
}

/// The text after the scheme's name, which may be in any case.
pub(super) fn credentials<'a>(request: &Request<'a>, scheme: &str) -> Result<&'a str, Why> {
    let (name, rest) = request.header("authorization").ok_or(Why::Unsigned)?.split_once(' ').ok_or(Why::Mismatch)?;
    let rest = rest.trim();
    if !name.eq_ignore_ascii_case(scheme) || rest.is_empty() {
        return Err(Why::Mismatch);
    }
    Ok(rest)
}

impl Scheme for Bearer {
    fn code(&self) -> &'static str {
        "bearer"
    }

    fn about(&self) -> &'static str {
        "Authorization: Bearer and the secret; the secret may be written as sha256: and the token's digest"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        let mut wrong = proof::secret_missing(keys, "the token that the sender puts after Bearer");
        if keys.secrets().any(|secret| digest(secret).is_none()) {
            wrong.push("secret begins with sha256: and is no digest: write 64 lower-case hexadecimal digits after it".to_owned());
        }
        wrong
    }

    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal> {
        let digests: Vec<_> = keys.secrets().filter_map(digest).collect();
        if digests.is_empty() {
            return Err(Why::Unconfigured.into());
        }
        let given = crypt::sha256(credentials(request, "bearer")?.as_bytes());
        if !crypt::any_same(&given, digests) {
            return Err(Why::Mismatch.into());
        }
        Ok(Verified::default())
    }

    fn sign(&self, keys: &Keys<'_>, _: i64, headers: &mut HeaderMap, _: &[u8]) -> Result<(), String> {
        let token = keys.current()?;
        if token.starts_with("sha256:") {
            return Err("only a digest of the token is known here: send an event with the token itself instead".to_owned());
        }
        proof::set_header(headers, "authorization", &format!("Bearer {token}"))
    }
}
