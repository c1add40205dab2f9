//! The agent against real servers and a real PostgreSQL.

mod host;
