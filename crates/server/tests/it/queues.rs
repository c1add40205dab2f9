//! The acts over HTTP, on a real PostgreSQL.

mod acts;
mod claims;
mod giving_away;
mod leaving;
mod nodes;
mod stage;
mod waiting;
