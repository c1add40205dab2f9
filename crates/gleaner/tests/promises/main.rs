//! The engine's promises, each on a real PostgreSQL, each in a test named for it.
//!
//! One server per run, one database per test, cloned from a migrated template. Tests wait for signals, not for seconds:
//! where time must pass, rows are moved back in time instead ([`world::World::age`]).

mod order;
#[path = "../world/mod.rs"]
mod world;
