//! Incoming requests: verifies who sent them, parses what they contain, and normalises the sender's address.
//!
//! Nothing here does I/O. The input is a [`Request`] and a [`Channel`]; the output is a [`Refusal`], or [`Inbound`] events to
//! store.
//!
//! # Layout
//!
//! - [`provider`] is the trait of a sender; each sender is one file under [`providers`].
//! - [`scheme`] is the trait of a signature preset; each preset is one file under [`schemes`].
//! - [`form`], [`json`]: parse bodies; [`draft`]: builds events.
//! - [`mail`] is what all mail providers share; [`crypt`] and [`text`] are used by every sender.
//! - [`address`]: addresses, in the normalised form in which they are compared.
//! - [`sealing`] encrypts the secrets of channels at rest.
//! - [`request`], [`channel`], [`event`], [`answer`], [`refusal`]: the types of input and output.

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
pub use provider::{Inbound, Message, Outcome, Provider, Sample, Setting, Stored, Verified};
pub use refusal::Refusal;
pub use request::Request;
pub use scheme::Scheme;
