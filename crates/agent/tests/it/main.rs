//! The agent against real servers and a real PostgreSQL.

mod a2a;
mod agent;
mod conformance;
mod dumps;
mod followups;
mod host;
mod mcp;
mod pipelines;
mod recording;
mod runs;
mod signing_in;
mod stages;
mod status;
mod wire;
#[path = "../../../gleaner/tests/world/mod.rs"]
mod world;
