//! What stands in the database: migrations, the committed schema, the specs' catalogue, attach and detach, rights and plans.

#[path = "../world/mod.rs"]
mod world;
