//! Tests of this crate's guarantees, each on a real PostgreSQL.

mod accounts;
mod crashes;
mod databases;
mod finding;
mod from_outside;
mod lifecycle;
mod support;
