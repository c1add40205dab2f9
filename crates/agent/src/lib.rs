//! The agent: a worker that may come and go. It claims rows, runs them through stages, and writes results back.
//!
//! # Layout
//!
//! - [`wire`]: queues accessed through a server, Gleaner's own or a Supabase project; sign-in and sessions.
//! - [`pipeline`]: what is done to an item, stage by stage; the kinds of stages are in `gleaner-stages`.
//! - [`agent`]: one process with its workers; [`config`]: its settings; [`status`]: its page, metrics and health.
//! - [`host`]: local apps in frames, and the models they share.
//! - [`mcp`], [`a2a`]: the queue as tools of a language model, and as an agent that other agents can call.

pub mod a2a;
pub mod agent;
pub mod config;
pub mod host;
pub mod mcp;
pub mod pipeline;
pub mod status;
pub mod wire;
