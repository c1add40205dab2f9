//! The server: HTTP in front of the engine. Stateless: any number of servers may share one database.
//!
//! # Layout
//!
//! - [`router`] is the table of contents; [`state`] is what handlers share; [`config`] what the server was told.
//! - [`door`] takes webhooks in; [`channels`] knows who may send; [`contacts`] who that was; [`gmail`] goes and looks itself.
//! - [`api`] and [`media`] are for callers, whom [`access`] tells apart; [`files`] keeps what does not belong into a table.
//! - [`rest`] and [`auth`] speak to supabase-js, with the openness of [`cors`]; errors have the shape of [`wire_error`] everywhere.
//! - [`queues`] has the engine's acts over HTTP, [`realtime`] tells subscribers what changed.
//! - [`nodes`] shows people which devices work.
//! - [`health`] says how we are, [`openapi`] what can be asked of us; [`serve`] has the connections.

pub mod access;
pub mod api;
pub mod auth;
pub mod channels;
pub mod clock;
pub mod config;
pub mod contacts;
pub mod cors;
pub mod door;
pub mod files;
pub mod gmail;
pub mod health;
pub mod media;
pub mod nodes;
pub mod openapi;
pub mod queues;
pub mod realtime;
pub mod rest;
pub mod router;
pub mod serve;
mod server;
pub mod state;
pub mod wire_error;

pub use config::Config;
pub use server::{Server, StartError};
pub use state::State;
