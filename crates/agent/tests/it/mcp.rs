//! Tests with the MCP client of the official SDK, on a real PostgreSQL.

mod guarding;
mod places;
mod safety;
mod sessions;
pub(crate) mod stage;
mod tools;
mod working;
