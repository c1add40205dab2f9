//! The agent: compute that comes and goes. It claims rows, runs them through stages, and writes results back.
//!
//! # Layout
//!
//! - [`wire`]: queues by way of a server, Gleaner's own or a Supabase project; who is signed in.
//! - [`pipeline`]: what is done to an item, stage by stage; [`stages`]: what a stage can be.
//! - [`said`]: what a program that works on an item says of its progress.
//! - [`agent`]: one process with its workers; [`config`]: how it is told what to do; [`status`]: its page, metrics and health.
//! - [`host`]: local apps in frames, and the models they share.
//! - [`mcp`], [`a2a`]: the queue as tools of a language model, and as an agent among agents.

pub mod a2a;
pub mod agent;
pub mod config;
pub mod host;
pub mod mcp;
pub mod pipeline;
pub mod said;
pub mod stages;
pub mod status;
pub mod wire;
