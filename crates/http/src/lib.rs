//! What all HTTP interfaces of the server share.
//!
//! # Layout
//!
//! - [`caller`](Caller) runs statements on a caller's behalf; [`authenticate`](Authenticate) takes the caller from a request.
//! - [`wire_error`](WireError) is the shape of errors; [`body`](Body) reads JSON; [`database`] has database errors.

mod authenticate;
mod body;
mod caller;
pub mod database;
mod wire_error;

pub use authenticate::{Authenticate, Authenticator};
pub use body::Body;
pub use caller::{Caller, Role, begin, person, with_caller};
pub use wire_error::WireError;
