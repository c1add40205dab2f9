//! What executes the systems that ship with the engine. Their tables and functions are in `crates/gleaner/sql/systems`.
//!
//! - [`followups`] sends messages to people at their time.
//! - [`runs`] replays recordings in a browser.
//! - [`schedules`] turns the occurrences of recurring follow-ups into follow-ups.

pub mod followups;
pub mod runs;
pub mod schedules;
