//! The agent against real servers and a real PostgreSQL.

mod pipelines;
mod recording;
mod stages;
