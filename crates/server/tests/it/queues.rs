//! The acts over HTTP, on a real PostgreSQL.

mod acts;
mod claims;
mod figures;
mod giving_away;
mod items;
mod leaving;
mod nodes;
mod stage;
mod waiting;
