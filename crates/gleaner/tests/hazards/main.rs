//! The ways such a queue breaks, tried: races, crashes, hostile rows, and a model that must agree over thousands of steps.

#[path = "../world/mod.rs"]
mod world;
