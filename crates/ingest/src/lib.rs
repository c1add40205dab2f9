//! What arrives: who sent it, what it says, and who that is.
//!
//! Nothing here does I/O. A [`Request`] and a [`Channel`] go in; a [`Refusal`], or [`Inbound`] things to store, come out.
//!
//! # Layout
//!
//! - [`provider`] is the contract of a sender; each sender is one file under [`providers`].
//! - [`scheme`] is the contract of a signature preset; each preset is one file under [`schemes`].
//! - [`form`], [`json`]: bodies read; [`draft`]: events written.
//! - [`mail`] is what every mail has in common; [`crypt`] and [`text`] are what every sender needs.
//! - [`address`]: who that is, in the one form addresses are compared in.
//! - [`sealing`] keeps the secrets of channels at rest.
//! - [`request`], [`channel`], [`event`], [`answer`], [`refusal`]: what goes in and what comes out.

pub mod address;
pub mod answer;
pub mod channel;
pub mod crypt;
pub mod draft;
pub mod event;
pub mod form;
#[doc(hidden)]
pub mod hostile;
pub mod json;
pub mod mail;
pub mod provider;
pub mod providers;
pub mod refusal;
pub mod request;
pub mod scheme;
pub mod schemes;
pub mod sealing;
pub mod text;

pub use answer::Answer;
pub use channel::{Channel, Settings};
pub use event::{Address, Attachment, Direction, Event, Kind, Memory};
pub use provider::{Inbound, Outcome, Provider, Sample, Setting, Stored, Verified};
pub use refusal::Refusal;
pub use request::Request;
pub use scheme::Scheme;
