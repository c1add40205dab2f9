//! Changes over WebSocket, on a real PostgreSQL, with the frames that supabase-js sends.

mod changes;
mod client;
mod joining;
mod sharing;
mod triggers;
mod trouble;
