//! One act on all rows that a filter names, in batches, while people watch.
//!
//! The rows are chosen once, when it starts. Each batch leaves out the rows that the filter no longer names: what went on by
//! itself in the meantime is left alone. Batches run with the rights of the caller.

pub(crate) mod request;
mod run;
pub(crate) mod start;
pub(crate) mod stop;
mod store;
pub(crate) mod watch;
