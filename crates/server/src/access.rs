//! Who is calling. The database decides what they may do: the server only tells it who they are.
//!
//! - `caller` runs statements on somebody's behalf; `secret`, `token` and `holder` tell who that is; `extract` takes the
//!   caller from a request.

mod caller;
mod extract;
mod holder;
mod secret;
mod token;

pub use caller::{Caller, Role, begin, person, with_caller};
pub use holder::is_opaque;
pub use secret::Access;
