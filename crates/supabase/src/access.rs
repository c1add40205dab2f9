//! Who is calling. The database decides what a caller may do; the server only passes on who it is.
//!
//! - `secret`, `token`, `api_keys` and `holder` find the caller that a token or a key belongs to; `identify` and `keyring` take
//!   both from a request to `/rest/v1`.

mod api_keys;
mod holder;
mod identify;
mod keyring;
mod secret;
mod token;

pub use api_keys::{ApiKeys, is_opaque};
pub use identify::Identify;
pub use keyring::Keyring;
pub use secret::{Access, WeakSecret};
