//! The server: HTTP in front of the engine.

pub mod access;
pub mod api;
pub mod auth;
pub mod channels;
pub mod cors;
pub mod rest;
pub mod wire_error;
