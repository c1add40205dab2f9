//! The agent against real servers and a real PostgreSQL.

mod agent;
mod conformance;
mod host;
mod signing_in;
mod status;
mod wire;
#[path = "../../../gleaner/tests/world/mod.rs"]
mod world;
