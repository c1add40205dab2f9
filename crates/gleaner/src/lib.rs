//! Gleaner turns any PostgreSQL table into a work queue: claims have leases, rows of crashed workers become due without a
//! sweeper, and work that its owner leaves waiting too long goes to others.
//!
//! The table is the queue. A [`Declaration`] says which column holds the status, and its values. [`migrate`](mod@migrate) and
//! [`attach`](mod@attach) add the columns, indexes and SQL functions. A [`Queue`] has these functions as methods, and a
//! [`Worker`] is a runtime around them. Programs without a table of their own can use the queue `jobs`.
//!
//! A complete program, which a test runs:
//!
//! ```no_run
#![doc = include_str!("../examples/worker.rs")]
//! ```
//!
//! # Features
//!
//! Both are on by default. A program that only enqueues and works, on a database that is migrated by another program, needs neither.
//!
//! - `schema`: declarations as TOML files, [`attach`](mod@attach), [`migrate`](mod@migrate) and [`render`](mod@render), with the SQL they apply.
//! - `tls`: encrypted connections. Without it a URL that demands TLS is an error.
//!
//! # Layout
//!
//! - [`queue`] has the acts as methods, with the verbs of the SQL functions; [`notify`] wakes waiting workers.
//! - [`worker`] runs handlers; [`worker::testing`] runs them without a database.
//! - [`transport`] is how a worker reaches its queue: directly, or over a protocol of your own.
//! - [`declaration`] is what an author writes; [`plan`] is what it means for a real table; [`render`](mod@render) turns it into SQL.
//! - [`attach`](mod@attach) puts the queue on the table and takes it off; [`migrate`](mod@migrate) applies the tables and functions that
//!   ship with the library; [`registry`] lists the queues.
//! - [`view`] shows queues and rows to people.

#![deny(missing_docs, rustdoc::broken_intra_doc_links)]

#[cfg(feature = "schema")]
pub mod attach;
pub mod connect;
pub mod declaration;
pub mod error;
#[cfg(feature = "schema")]
mod files;
pub mod introspect;
#[cfg(feature = "schema")]
pub mod migrate;
pub mod notify;
pub mod plan;
pub mod queue;
pub mod registry;
#[cfg(feature = "schema")]
pub mod render;
pub mod transport;
pub mod view;
pub mod worker;

pub use connect::{Pool, connect, pool};
pub use declaration::Declaration;
pub use error::{Error, Result};
pub use queue::{Acts, Claim, Completion, Failure, Held, Item, Outcome, Payload, Progress, Queue};
pub use transport::Direct;
pub use worker::{Context, Job, Worker};

/// The Rust in the manual and in the README compiles.
#[cfg(doctest)]
mod manual {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/how-to/embed-a-worker.md")]
    mod embed_a_worker {}
}
