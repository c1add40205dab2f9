//! What users get: the work of the other rows through `Worker` and `Queue`, as the manual shows them.

pub(crate) mod backlog;
pub(crate) mod drain;
pub(crate) mod enqueue;
pub(crate) mod library;
pub(crate) mod pickup;
pub(crate) mod pinned;
