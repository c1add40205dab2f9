//! The manual, tested: its console blocks are run as they are printed, its links lead somewhere, its prose has one width.
//!
//! Every `console` and `sh` block of README, docs and examples is run, or says why not in a comment before it:
//!
//! - `<!-- not run: reason -->`
//! - `<!-- run by: crates/…/test.rs -->` where another test runs it.
//!
//! A comment `<!-- setup: commands -->` is run by the shell at its place: it prepares what the page takes for granted.

mod compare;
mod console;
mod page;
mod prose;
mod session;
#[allow(dead_code)] // Shared with the tests of the commands.
#[path = "../it/support.rs"]
mod support;
