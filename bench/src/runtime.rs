//! What users get: the work of the other rows through `Worker` and `Queue`, as the manual shows them.

pub mod backlog;
pub mod drain;
pub mod enqueue;
pub mod library;
pub mod pickup;
pub mod pinned;
