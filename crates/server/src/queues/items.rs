//! The rows of a queue, for people to see: lists, one row with its history, causes of dead rows, counts, the declaration.
//!
//! Who operates all rows of a queue sees all of them. Others see what row-level security shows them.

pub(crate) mod causes;
pub(crate) mod declaration;
pub(crate) mod filter;
pub(crate) mod list;
pub(crate) mod show;
pub(crate) mod stats;
pub(super) mod viewing;
