//! The queue as an MCP server, so that an assistant can be the worker.
//!
//! An assistant works like any agent: it claims under a lease, shows progress, completes or fails. What is different is that
//! it reads what strangers wrote and may take it for orders. So results mark what came from outside ([`quote`]), and what an
//! injected sentence could do harm with is not there unless somebody granted it ([`grant`]).
//!
//! - [`service`]: what all assistants of this process share; [`session`]: one of them, and its agent id.
//! - [`act`]: the tools and their arguments; [`calls`]: what each does; [`refusal`]: what it says when it does not.
//! - [`desk`]: what a place offers besides the acts of a queue; [`desks`]: a database, a server.
//! - [`keeper`]: shows life for an assistant that thinks, and stops when it has vanished.
//! - [`tools`]: all of it in the protocol's words; [`http`]: over streamable HTTP, guarded; [`guard`]: by whom, from where.

pub mod act;
mod calls;
pub mod desk;
pub mod desks;
pub mod grant;
pub mod guard;
pub mod http;
pub mod keeper;
mod prompt;
pub mod quote;
pub mod refusal;
pub mod service;
pub mod session;
mod stdio;
mod tools;

pub use self::act::Act;
pub use self::desk::Desk;
pub use self::desks::{DirectDesk, WireDesk};
pub use self::grant::{Grant, Grants};
pub use self::guard::Guard;
pub use self::http::router;
pub use self::refusal::Refusal;
pub use self::service::{Service, Settings};
pub use self::session::Session;
pub use self::stdio::serve_stdio;
