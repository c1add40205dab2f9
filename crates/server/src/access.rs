//! Who is calling. The database decides what they may do: the server only tells it who they are.
//!
//! - `caller` runs statements on somebody's behalf; `secret`, `token` and `holder` tell who that is; `refused` says no, in the
//!   words of the wire contract; `extract` takes the caller from a request.

mod caller;
mod extract;
mod holder;
mod refused;
mod secret;
mod token;

pub use caller::{Caller, Role, begin, with_caller};
pub use holder::is_opaque;
pub use refused::Refused;
pub use secret::Access;
