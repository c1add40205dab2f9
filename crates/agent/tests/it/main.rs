//! The agent against real servers and a real PostgreSQL.

mod a2a;
mod mcp;
