//! The queue as an MCP server, so that an assistant can be the worker.
//!
//! An assistant works like any agent: it claims under a lease, reports progress, completes or fails. The difference is that it
//! reads text written by others and may follow it as instructions. So results mark content that came from outside
//! ([`quote`]), and the acts that a prompt injection could misuse are absent unless the operator granted them ([`grant`]).
//!
//! - [`service`]: state shared by all assistants of this process; [`session`]: one assistant and its agent id.
//! - [`act`]: the tools and their arguments; [`calls`]: what each tool does; [`refusal`]: the answer when an act is refused.
//! - [`backend`]: what a place offers besides the acts of a queue; [`backends`]: the implementations for a database and for a server.
//! - [`renewal`]: renews leases for an assistant that is thinking, and stops once it has disappeared.
//! - [`tools`]: the acts as MCP tools; [`http`]: the server over streamable HTTP; [`guard`]: which callers and origins it
//!   accepts.

pub mod act;
pub mod backend;
pub mod backends;
mod calls;
pub mod grant;
pub mod guard;
pub mod http;
pub mod lease_renewal;
mod prompt;
pub mod quote;
pub mod refusal;
pub mod service;
pub mod session;
mod stdio;
mod tools;

pub use self::act::Act;
pub use self::backend::Backend;
pub use self::backends::{DirectBackend, WireBackend};
pub use self::grant::{Grant, Grants};
pub use self::guard::Guard;
pub use self::http::router;
pub use self::refusal::Refusal;
pub use self::service::{Service, Settings};
pub use self::session::Session;
pub use self::stdio::serve_stdio;
