//! The worker runtime: simulated against a queue in memory, where minutes pass in milliseconds and always the same way, and, where
//! transactions matter, against PostgreSQL.

#[path = "../world/mod.rs"]
mod world;

mod building;
mod connecting;
mod control;
mod crashing;
mod errors;
mod examples;
mod polling;
mod running;
mod simulation;
mod sleeping;
mod transactions;
