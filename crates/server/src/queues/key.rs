//! By what equal claims are known.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use gleaner::Claim;

use crate::access::Caller;

/// Claims with the same key find, and find empty, the same. A hash, because kinds and claims of tokens may be long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    pub fn new(queue: &str, caller: &Caller, claim: &Claim, tenant: Option<&str>) -> Self {
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
