//! The agent against real servers and a real PostgreSQL.

mod agent;
mod conformance;
mod pipelines;
mod recording;
mod signing_in;
mod stages;
mod status;
mod wire;
#[path = "../../../gleaner/tests/world/mod.rs"]
mod world;
