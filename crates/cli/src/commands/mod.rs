//! One file per subcommand. Each has its arguments, with examples, and one function `run`.

pub(crate) mod agent;
pub(crate) mod attach;
pub(crate) mod channels;
pub(crate) mod completions;
pub(crate) mod contacts;
pub(crate) mod detach;
pub(crate) mod down;
pub(crate) mod dumps;
pub(crate) mod enqueue;
pub(crate) mod followups;
pub(crate) mod items;
pub(crate) mod keys;
pub(crate) mod logs;
pub(crate) mod migrate;
pub(crate) mod prune;
pub(crate) mod queues;
pub(crate) mod read_document;
pub(crate) mod recover;
pub(crate) mod replay;
pub(crate) mod reset;
pub(crate) mod serve;
pub(crate) mod sql;
pub(crate) mod status;
pub(crate) mod up;
pub(crate) mod users;
pub(crate) mod work;
