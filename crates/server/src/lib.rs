//! The server: HTTP in front of the engine.

pub mod files;
pub mod gmail;
pub mod media;
