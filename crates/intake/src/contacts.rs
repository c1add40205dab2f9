//! Matches activities to contacts.
//!
//! The matching itself happens in the database, in the transaction that inserts an activity (`gleaner.match_contact`), so
//! that it also works for rows that did not arrive by webhook. This module has what SQL cannot do, or what a person
//! requests:
//!
//! - [`parse_pending`] parses contacts' own numbers, which are free text, with the same rules as senders' numbers.
//! - [`create`] creates contacts for unknown senders, right after their messages are committed.
//! - [`sweep`] does what is left of both after a server crashed or was not running.
//! - [`unmatched`] lists activities that matched no contact, or several; [`link`] and [`unlink`] are a person's decision
//!   about them.
//! - [`http`] offers the last three to callers, each with their own rights.

mod creating;
mod http;
mod linking;
mod parsing;
mod sweeping;
mod unmatched;

pub use self::http::router;
pub use creating::{Created, create};
pub use linking::{Answer, Link, Outcome, link, unlink};
pub use parsing::{parse_all, parse_pending};
pub use sweeping::{Swept, keep_swept, sweep};
pub use unmatched::{Candidate, Cursor, Page, Unmatched, unmatched};
