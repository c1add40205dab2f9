//! The worker runtime: simulated against a queue in memory, where minutes pass in milliseconds and deterministically, and against
//! PostgreSQL when transactions matter.

#[path = "../world/mod.rs"]
mod world;

mod building;
mod connecting;
mod control;
mod crashing;
mod errors;
mod examples;
mod jobs;
mod polling;
mod running;
mod simulation;
mod sleeping;
mod transactions;
