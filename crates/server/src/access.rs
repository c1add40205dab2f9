//! Who is calling. The database decides what they may do: the server only tells it who they are.

mod caller;

pub use caller::{Caller, Role, begin, with_caller};
