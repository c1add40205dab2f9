//! What executes the systems that ship with the engine. Their tables and functions are in `crates/gleaner/sql/systems`.
//!
//! - [`followups`] sends messages to people at their time.

pub mod followups;
