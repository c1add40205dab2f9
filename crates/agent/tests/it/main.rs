//! The agent against real servers and a real PostgreSQL.

mod conformance;
mod signing_in;
mod wire;
#[path = "../../../gleaner/tests/world/mod.rs"]
mod world;
