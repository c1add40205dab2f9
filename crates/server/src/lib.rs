//! The server: HTTP in front of the engine.

pub mod access;
pub mod api;
pub mod channels;
pub mod queues;
pub mod realtime;
pub mod contacts;
