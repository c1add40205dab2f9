//! Everything that comes in from outside and becomes rows: webhooks, mailboxes, and the files that belong to them.
//!
//! # Layout
//!
//! - [`webhooks`] receives requests of providers; [`channels`] has the configured senders, and [`api`] lets operators
//!   manage them.
//! - [`mailboxes`] polls Gmail mailboxes.
//! - [`contacts`] matches senders to contacts.
//! - [`dumps`] takes documents.
//! - [`runs`] keeps screenshots of replayed recordings.
//! - [`files`] stores what does not belong in a table; [`media`] serves recordings and attachments.

pub mod api;
pub mod channels;
pub mod contacts;
pub mod dumps;
pub mod files;
pub mod mailboxes;
pub mod media;
pub mod runs;
pub mod webhooks;
