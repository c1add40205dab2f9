//! What executes the systems that ship with the engine. Their tables and functions are in `crates/gleaner/sql/systems`.
//!
//! - [`followups`] sends messages to people at their time.
//! - [`runs`] replays recordings in a browser.

pub mod followups;
pub mod runs;
