//! Where assistants can work: a database, or a server in front of one.

mod direct;

pub use self::direct::DirectDesk;
