//! Tests of the database schema: migrations, the committed schema, the systems' contracts, attach and detach, rights and plans.

mod adopting;
mod attaching;
mod bouncer;
mod citus;
mod committed;
mod contracts;
mod declarations;
mod detaching;
mod dump;
mod encryption;
mod lengths;
mod matrix;
mod migrations;
mod names;
mod plans;
#[path = "../world/bouncer.rs"]
mod pooler;
mod restoring;
mod rights;
mod shapes;
mod supabase;
mod walks;
#[path = "../world/mod.rs"]
mod world;
