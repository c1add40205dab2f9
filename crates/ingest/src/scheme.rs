//! The trait of a signature preset: how a sender proves that it has the secret.
//!
//! A scheme does not interpret the content of a request. Providers with a scheme of their own name it; a generic channel chooses
//! one by its setting `scheme`. To add one, add a file under [`crate::schemes`] and its test vectors.

use std::borrow::Cow;
use std::fmt;

use http::HeaderMap;

use crate::provider::Verified;
use crate::{Refusal, Request};

pub trait Scheme: fmt::Debug + Send + Sync {
    /// The value of the setting `scheme`.
    fn code(&self) -> &'static str;

    /// One line for users: which senders use it, and the form of the secret.
    fn about(&self) -> &'static str;

    /// What is wrong with these keys, each with how to correct it; empty when they will work.
    fn check(&self, keys: &Keys<'_>) -> Vec<String>;

    /// A warning about a scheme that works but has a risk.
    fn caution(&self) -> Option<&'static str> {
        None
    }

    /// Whether the request was made with one of the keys. Every key is tried, in constant time. Without a key the request is
    /// refused.
    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal>;

    /// The event's id, where the scheme signs one: a redelivery has the same id. Called only for a verified request.
    fn signed_id(&self, request: &Request<'_>) -> Option<String> {
        let _ = request;
        None
    }

    /// Signs a body as the sender would. The error says why that is not possible.
    fn sign(&self, keys: &Keys<'_>, unix_now: i64, headers: &mut HeaderMap, body: &[u8]) -> Result<(), String>;
}

/// The keys that a scheme verifies with, taken from a channel's settings by its provider. Never printed.
#[derive(Clone, Default)]
pub struct Keys<'a> {
    /// The current secret first, then the previous one; none of them empty.
    secrets: Vec<Cow<'a, str>>,
    /// The header with the signature, when it is not the scheme's default.
    pub header: Option<&'a str>,
}

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("secrets", &self.secrets.len()).field("header", &self.header).finish()
    }
}

impl<'a> Keys<'a> {
    pub fn new<S: Into<Cow<'a, str>>>(secrets: impl IntoIterator<Item = S>) -> Self {
        Self { secrets: secrets.into_iter().map(Into::into).filter(|secret| !secret.is_empty()).collect(), header: None }
    }

    #[must_use]
    pub fn with_header(mut self, header: Option<&'a str>) -> Self {
        self.header = header;
        self
    }

    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(AsRef::as_ref)
    }

    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The secret to sign with.
    pub fn current(&self) -> Result<&str, String> {
        self.secrets().next().ok_or_else(|| "the channel has no secret to sign with".to_owned())
    }
}
