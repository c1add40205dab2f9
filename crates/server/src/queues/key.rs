//! The key by which equal claims are recognized.

use gleaner_http::Caller;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use gleaner::Claim;

/// Claims with the same key get the same rows and are empty at the same time. It is a hash, because kinds and token claims
/// may be long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

impl Key {
    pub(super) fn new(queue: &str, caller: &Caller, claim: &Claim, tenant: Option<&str>) -> Self {
        let who = match caller {
            Caller::Ourselves => Value::Null,
            Caller::Token { claims, .. } => Value::Object(claims.clone()),
        };
        let kinds = claim.kinds.as_ref().map(|kinds| {
            let mut kinds = kinds.clone();
            kinds.sort_unstable();
            kinds
        });
        let hold = claim.hold.map(|hold| hold.as_micros().to_string());
        Self::of(&json!([queue, who, claim.owner, kinds, claim.started, hold, tenant]))
    }

    pub(super) fn of(value: &Value) -> Self {
        Self(Sha256::digest(value.to_string()).into())
    }
}
