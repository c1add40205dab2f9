//! The promises of this crate, each kept on a real PostgreSQL.

mod accounts;
mod crashes;
mod databases;
mod finding;
mod from_outside;
mod lifecycle;
mod support;
