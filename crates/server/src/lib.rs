//! The server: HTTP in front of the engine. Stateless: any number of servers may share one database.
//!
//! # Layout
//!
//! - [`router`] is the table of contents; [`state`] is what handlers share; [`config`] what the server was told.
//! - [`door`] takes webhooks in; [`channels`] knows who may send; [`files`] keeps what does not belong into a table.
//! - [`health`] says how we are; [`serve`] has the connections.

pub mod access;
pub mod api;
pub mod channels;
pub mod clock;
pub mod config;
pub mod contacts;
pub mod door;
pub mod files;
pub mod gmail;
pub mod health;
pub mod media;
pub mod router;
pub mod serve;
mod server;
pub mod state;

pub use config::Config;
pub use server::{Server, StartError};
pub use state::State;
