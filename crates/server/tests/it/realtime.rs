//! Changes over WebSocket, on a real PostgreSQL, with the frames that supabase-js sends.

mod bans;
mod changes;
mod client;
mod joining;
#[path = "../../../gleaner/tests/world/bouncer.rs"]
mod pooler;
mod sharing;
mod triggers;
mod trouble;
mod workspaces;
