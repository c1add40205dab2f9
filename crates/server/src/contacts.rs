//! Who activities came from.
//!
//! Matching itself happens in the database, in the transaction that inserts an activity (`gleaner.match_contact`), so that it
//! also holds for rows that never passed our door. What is here is what SQL cannot do or a person asks for:
//!
//! - [`parse_pending`] reads contacts' own numbers, which are free text, with the same rules as senders'.
//! - [`create`] makes contacts of unknown senders, right after their messages are committed.
//! - [`sweep`] makes good what a server that died, or was not there, left undone of both.
//! - [`unmatched`] lists what matched nobody, or several; [`link`] and [`unlink`] are a person's decision about it.
//! - [`http`] offers the last three to callers, each within their own rights.

mod creating;
pub mod http;
mod linking;
mod parsing;
mod sweeping;
mod unmatched;

pub use creating::{Created, create};
pub use linking::{Answer, Link, Outcome, link, unlink};
pub use parsing::{parse_all, parse_pending};
pub use sweeping::{Swept, keep_swept, sweep};
pub use unmatched::{Candidate, Cursor, Page, Unmatched, unmatched};
