//! Keyed hashes, and comparisons in constant time.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// Standard base64, with or without padding: senders differ, and both decode to the same bytes.
pub const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

const ANY_KEY: &str = "HMAC takes keys of any length";

/// HMAC-SHA1 over the parts, one after the other.
pub fn hmac_sha1(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
    let mut mac = Hmac::<Sha1>::new_from_slice(key).expect(ANY_KEY);
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// HMAC-SHA256 over the parts, one after the other.
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect(ANY_KEY);
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Lower-case hex of the SHA-256: the fallback id of an event that has none.
pub fn fingerprint(bytes: &[u8]) -> String {
    hex::encode(sha256(bytes))
}

/// Whether one of the candidates equals the given value. Every candidate is computed and compared, also after a match, so that the
/// time does not reveal which secret matched. An empty candidate never matches: an empty secret must never authenticate a request.
pub fn any_same<C: AsRef<[u8]>>(given: &[u8], candidates: impl IntoIterator<Item = C>) -> bool {
    let mut found = Choice::from(0);
    for candidate in candidates {
        let candidate = candidate.as_ref();
        found |= given.ct_eq(candidate) & Choice::from(u8::from(!candidate.is_empty()));
    }
    found.into()
}

/// [`any_same`] for secrets that are themselves sent (passwords, bearer tokens): hashed first, so that the time does not reveal
/// their length.
pub fn any_same_secret<'a>(given: &[u8], secrets: impl IntoIterator<Item = &'a str>) -> bool {
    let given = sha256(given);
    any_same(&given, secrets.into_iter().map(|secret| if secret.is_empty() { Vec::new() } else { sha256(secret.as_bytes()).to_vec() }))
}

/// User and password of an `Authorization: Basic` header. A password may contain colons, a user name may not.
pub fn basic_credentials(authorization: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, encoded) = authorization.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = BASE64.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some((decoded[..colon].to_vec(), decoded[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_secret_equals_nothing_not_even_nothing() {
        assert!(!any_same(b"", [b""]));
        assert!(!any_same_secret(b"", [""]));
        assert!(!any_same(b"x", Vec::<&[u8]>::new()));
    }

    #[test]
    fn every_candidate_is_looked_at_after_a_match() {
        let mut seen = 0;
        let candidates = ["current", "previous", "other"].iter().inspect(|_| seen += 1);
        assert!(any_same(b"current", candidates));
        assert_eq!(seen, 3);
    }

    #[test]
    fn any_of_the_secrets_opens_and_no_other() {
        assert!(any_same_secret(b"old", ["new", "old"]));
        assert!(any_same_secret(b"new", ["new", "old"]));
        assert!(!any_same_secret(b"ne", ["new", "old"]));
        assert!(!any_same_secret(b"newold", ["new", "old"]));
    }

    #[test]
    fn basic_credentials_split_at_the_first_colon() {
        let header = format!("bAsIc {}", BASE64.encode("user:pa:ss:"));
        assert_eq!(basic_credentials(&header), Some((b"user".to_vec(), b"pa:ss:".to_vec())));
        for hostile in ["", "Basic", "Basic ", "Basic !!!", "Bearer dXNlcjpwYXNz", &format!("Basic {}", BASE64.encode("nocolon"))] {
            assert_eq!(basic_credentials(hostile), None, "{hostile}");
        }
    }
}
