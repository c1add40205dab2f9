//! The engine's promises, each on a real PostgreSQL, each in a test named for it.
//!
//! One server per run, one database per test, cloned from a migrated template. Tests wait for signals, not for seconds:
//! where time must pass, rows are moved back in time instead ([`world::World::age`]).

mod cancelling;
mod clocks;
mod crashes;
mod enqueueing;
mod failures;
mod hands;
mod leases;
mod order;
mod plain_writers;
mod poison;
mod policy;
mod progress;
mod pruning;
mod racing;
mod rights;
mod sheaves;
mod specs;
mod swaths;
mod transactions;
mod unique;
#[path = "../world/mod.rs"]
mod world;
