//! The ways to fetch what belongs to an item: its recording, and its record.
//!
//! The usual way is through the server: it has the provider's credentials, and blocks requests to addresses that are not public.

mod direct;
mod server;

pub use self::direct::Direct;
pub use self::server::Server;
pub use gleaner_stages::fetch::{Fetched, Medium, Nothing};
