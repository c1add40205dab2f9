//! Channels: what is stored of them, who may see it, and how their secrets change.

mod acts;
mod api;
mod door;
mod masks;
mod rotation;
mod sealing;
mod testing;
mod world;
