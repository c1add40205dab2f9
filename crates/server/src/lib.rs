//! The server: HTTP in front of the engine.

pub mod files;
pub mod gmail;
pub mod media;
pub mod access;
pub mod api;
pub mod channels;
pub mod contacts;
