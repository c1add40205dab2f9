//! The server: the HTTP interface of the engine. It is stateless, so any number of servers may share one database.
//!
//! # Layout
//!
//! - [`router`] lists all routes; [`state`] is what handlers share; [`config`] is the configuration.
//! - [`queues`] serves the engine's acts over HTTP; [`change_feed`] has the connections by which subscribers are notified
//!   of changes.
//! - [`nodes`] shows people which devices work; [`people`] ends a person's access and reassigns their work; `team` has
//!   people and keys over HTTP.
//! - [`health`] has the health checks, [`openapi`] the description of the API; [`serve`] handles connections, [`layers`]
//!   surround every route: CORS, request ids, tracing.
//! - [`ApiLogin`] is the database login of `/rest/v1`.
//! - `web` serves the embedded web interface; `secret` loads the project's secret.
//!
//! Webhooks, mailboxes and files are in `gleaner-intake`. The API for programs written for Supabase is in
//! `gleaner-supabase`.

mod api_login;
pub mod change_feed;
pub mod config;
pub mod health;
pub mod layers;
pub mod nodes;
pub mod openapi;
pub mod people;
pub mod queues;
mod router;
mod secret;
mod serve;
mod server;
mod state;
mod team;
mod web;

pub use api_login::ApiLogin;
pub use config::Config;
pub use router::router;
pub use secret::{SecretError, load_access};
pub use server::{Server, StartError};
pub use state::State;
