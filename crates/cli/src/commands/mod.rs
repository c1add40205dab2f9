//! One file per subcommand. Each has its arguments, with examples, and one function `run`.

pub mod agent;
pub mod attach;
pub mod channels;
pub mod completions;
pub mod contacts;
pub mod detach;
pub mod down;
pub mod enqueue;
pub mod items;
pub mod keys;
pub mod logs;
pub mod migrate;
pub mod prune;
pub mod queues;
pub mod recover;
pub mod replay;
pub mod reset;
pub mod serve;
pub mod sql;
pub mod status;
pub mod up;
pub mod users;
pub mod work;
