//! The contract of a signature preset: how a sender proves that it knows the secret.
//!
//! A scheme knows nothing of what a request says. Providers with a scheme of their own name it; a generic channel chooses one
//! by its setting `scheme`. Adding one is adding a file under [`crate::schemes`] and its vectors.

use std::borrow::Cow;
use std::fmt;

use http::HeaderMap;

use crate::provider::Verified;
use crate::{Refusal, Request};

pub trait Scheme: fmt::Debug + Send + Sync {
    /// What the setting `scheme` says.
    fn code(&self) -> &'static str;

    /// One line for people: who uses it, and what the secret looks like.
    fn about(&self) -> &'static str;

    /// What is wrong with these keys, each with what to write instead; nothing when they will work.
    fn check(&self, keys: &Keys<'_>) -> Vec<String>;

    /// What works and should yet be known before it is relied on.
    fn caution(&self) -> Option<&'static str> {
        None
    }

    /// Was this request made by somebody who knows one of the keys? Every key is tried, in constant time; no key means no.
    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal>;

    /// The event's id, where the scheme signs one: a redelivery carries the same. Asked only of a request that was verified.
    fn signed_id(&self, request: &Request<'_>) -> Option<String> {
        let _ = request;
        None
    }

    /// Signs a body as the sender would; an error says why we cannot.
    fn sign(&self, keys: &Keys<'_>, unix_now: i64, headers: &mut HeaderMap, body: &[u8]) -> Result<(), String>;
}

/// What a scheme verifies with, drawn from a channel's settings by its provider. Never printed.
#[derive(Clone, Default)]
pub struct Keys<'a> {
    /// The current secret first, then the previous one; none of them empty.
    secrets: Vec<Cow<'a, str>>,
    /// Header that carries the signature, when it is not the scheme's own.
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
