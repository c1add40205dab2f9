//! `standard-webhooks`: the published standard, and Svix, where it originated.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use http::HeaderMap;

use super::proof;
use crate::provider::Verified;
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request, crypt};

#[derive(Debug)]
pub struct StandardWebhooks;

/// The two prefixes of the headers. One request uses one of them: a mixture would pair a signed value with an unsigned one.
fn family(request: &Request<'_>) -> &'static str {
    if request.headers.contains_key("webhook-id") { "webhook" } else { "svix" }
}

fn header<'a>(request: &Request<'a>, name: &str) -> Result<&'a str, Why> {
    request.header(&format!("{}-{name}", family(request))).filter(|value| !value.is_empty()).ok_or(Why::Unsigned)
}

/// The key inside a secret. `whsec_` may be omitted, as Svix's own libraries allow.
fn shared(secret: &str) -> Option<Vec<u8>> {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok()?;
    (!key.is_empty()).then_some(key)
}

fn public(secret: &str) -> Option<VerifyingKey> {
    let bytes = STANDARD.decode(secret.strip_prefix("whpk_")?).ok()?;
    VerifyingKey::from_bytes(&bytes.try_into().ok()?).ok()
}

/// The signatures of one version in the space-separated list.
fn signatures<const N: usize>(list: &str, version: &str) -> Vec<[u8; N]> {
    let of_version = list.split(' ').filter_map(|one| one.split_once(',')).filter(|(name, _)| *name == version);
    of_version.filter_map(|(_, text)| STANDARD.decode(text).ok()?.try_into().ok()).collect()
}

impl Scheme for StandardWebhooks {
    fn code(&self) -> &'static str {
        "standard-webhooks"
    }

    fn about(&self) -> &'static str {
        "Standard Webhooks and Svix: the secret begins with whsec_ (or whpk_ for a sender that signs with a private key)"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        let mut wrong = proof::secret_missing(keys, "the endpoint's signing secret, which begins with whsec_ or whpk_");
        if keys.secrets().any(|secret| public(secret).is_none() && shared(secret).is_none()) {
            wrong.push("secret is no Standard Webhooks secret: write whsec_ and base64, or whpk_ and an ed25519 public key".to_owned());
        }
        wrong
    }

    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal> {
        let shared: Vec<_> = keys.secrets().filter_map(shared).collect();
        let public: Vec<_> = keys.secrets().filter_map(public).collect();
        if shared.is_empty() && public.is_empty() {
            return Err(Why::Unconfigured.into());
        }
        let (id, timestamp, list) = (header(request, "id")?, header(request, "timestamp")?, header(request, "signature")?);
        if list.split(' ').count() > proof::MOST_SIGNATURES {
            return Err(Why::Mismatch.into());
        }
        let parts: [&[u8]; 5] = [id.as_bytes(), b".", timestamp.as_bytes(), b".", request.body];
        let mut found = proof::any_hmac(&shared, &parts, &signatures(list, "v1"));
        if !public.is_empty() {
            let message = parts.concat();
            for (key, signature) in public.iter().flat_map(|key| signatures(list, "v1a").into_iter().map(move |one| (key, one))) {
                found |= key.verify_strict(&message, &Signature::from_bytes(&signature)).is_ok();
            }
        }
        // An id with a dot could be read as a different id and time. The standard forbids it.
        if !found || id.contains('.') {
            return Err(Why::Mismatch.into());
        }
        proof::in_time(timestamp, request)?;
        Ok(Verified::default())
    }

    fn signed_id(&self, request: &Request<'_>) -> Option<String> {
        header(request, "id").ok().map(str::to_owned)
    }

    fn sign(&self, keys: &Keys<'_>, unix_now: i64, headers: &mut HeaderMap, body: &[u8]) -> Result<(), String> {
        let cannot = "only the sender can sign for a public key: send an event from there instead";
        let key = keys.secrets().find_map(shared).ok_or(cannot)?;
        let timestamp = unix_now.to_string();
        let id = format!("msg_{}", hex::encode(&crypt::sha256(&[timestamp.as_bytes(), body].concat())[..12]));
        let signature = crypt::hmac_sha256(&key, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
        proof::set_header(headers, "webhook-id", &id)?;
        proof::set_header(headers, "webhook-timestamp", &timestamp)?;
        proof::set_header(headers, "webhook-signature", &format!("v1,{}", STANDARD.encode(signature)))
    }
}
