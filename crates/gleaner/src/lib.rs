//! Gleaner turns any PostgreSQL table into a fenced, self-healing, work-stealing queue.
//!
//! # Layout
//!
//! - [`declaration`] is what an author writes; [`plan`] is what it means for a real table; [`render`] makes SQL of it.
//! - [`attach`] puts the queue on the table and takes it off; [`migrate`] ships our own tables; [`registry`] lists the queues.
//! - [`queue`] has the acts as methods, with the verbs of the SQL functions; [`bell`] wakes those who wait.
//! - [`transport`] is how a worker reaches its queue, directly or over a wire.
//! - [`view`] shows queues and rows to people; [`worker`] is a small runtime around the acts.

pub mod attach;
pub mod bell;
pub mod connect;
pub mod declaration;
pub mod error;
mod files;
pub mod introspect;
pub mod migrate;
pub mod plan;
pub mod queue;
pub mod registry;
pub mod render;
pub mod transport;
pub mod view;
pub mod worker;

pub use connect::{Pool, connect, pool};
pub use declaration::Declaration;
pub use error::{Error, Result};
pub use queue::{Acts, Claim, Failure, Item, Outcome, Queue};
pub use worker::{Context, Worker};
