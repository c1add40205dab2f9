//! What all HTTP interfaces of the server share.
//!
//! # Layout
//!
//! - [`caller`](Caller) runs statements on a caller's behalf; [`authenticate`](Authenticate) takes the caller from a request.
//! - [`wire_error`](WireError) is the shape of errors; [`describe`] has the groups of errors that handlers describe.
//! - [`address`] says which addresses belong to the public Internet.
//! - [`extract`](Body) reads JSON bodies, paths and queries; [`database`] has database errors; [`memory`] is a budget for bodies.

pub mod address;
mod authenticate;
mod caller;
pub mod database;
pub mod describe;
mod extract;
pub mod memory;
mod wire_error;

pub use authenticate::{Authenticate, Authenticator};
pub use caller::{Caller, Role, begin, person, with_caller};
pub use extract::{Body, Path, Query};
pub use wire_error::WireError;
