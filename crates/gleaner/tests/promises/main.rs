//! The engine's guarantees, each tested on a real PostgreSQL, in a test named after it.
//!
//! One server per run, one database per test, cloned from a migrated template. Tests wait for conditions, not for seconds: to let
//! time pass, rows are moved back in time instead ([`world::World::age`]).

mod batch_leases;
mod breadth;
mod bulk_ranges;
mod calls;
mod cancelling;
mod clocks;
mod combining;
mod contracts;
mod crashes;
mod deadlocks;
mod dumps;
mod early;
mod enqueueing;
mod failures;
mod grants;
mod hands;
mod large_tables;
mod leases;
mod linear;
mod order;
mod orders;
mod partitions;
mod plain_writers;
mod poison;
mod policy;
mod progress;
mod pruning;
mod racing;
mod recovering;
mod rejected;
mod rights;
mod tenants;
mod transactions;
mod triggers_inside_acts;
mod unique;
mod workspaces;
#[path = "../world/mod.rs"]
mod world;
