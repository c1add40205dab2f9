//! The acts over HTTP, on a real PostgreSQL.

mod acts;
mod claims;
mod leaving;
mod nodes;
mod stage;
mod waiting;
