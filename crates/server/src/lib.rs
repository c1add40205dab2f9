//! The server: HTTP in front of the engine.

pub mod auth;
