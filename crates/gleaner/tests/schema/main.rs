//! What stands in the database: migrations, the committed schema, the specs' catalogue, attach and detach, rights and plans.

mod attaching;
mod bouncer;
mod committed;
mod declarations;
mod detaching;
mod dump;
mod matrix;
mod migrations;
mod plans;
#[path = "../world/bouncer.rs"]
mod pooler;
mod rights;
mod specs;
mod supabase;
mod walks;
#[path = "../world/mod.rs"]
mod world;
