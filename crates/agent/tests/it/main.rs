//! The agent against real servers and a real PostgreSQL.

mod a2a;
mod conformance;
mod mcp;
mod signing_in;
mod wire;
#[path = "../../../gleaner/tests/world/mod.rs"]
mod world;
