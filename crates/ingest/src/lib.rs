//! What arrives: who sent it, what it says, and who that is.
//!
//! Nothing here does I/O. A [`Request`] and a [`Channel`] go in; a [`Refusal`], or [`Inbound`] things to store, come out.
//!
//! # Layout
//!
//! - [`provider`] is the contract of a sender; each sender is one file under [`providers`].
//! - [`sealing`] keeps the secrets of channels at rest.
//! - [`request`], [`channel`], [`event`], [`answer`], [`refusal`]: what goes in and what comes out.

pub mod answer;
pub mod channel;
pub mod event;
pub mod provider;
pub mod providers;
pub mod refusal;
pub mod request;
pub mod sealing;

pub use answer::Answer;
pub use channel::{Channel, Settings};
pub use event::{Address, Attachment, Direction, Event, Kind, Memory};
pub use provider::{Inbound, Outcome, Provider, Sample, Setting, Stored, Verified};
pub use refusal::Refusal;
pub use request::Request;
