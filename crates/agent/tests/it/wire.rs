//! What only a wire can meet: gateways, limits, lost answers, servers that are not ours.

pub mod front;

mod files;
mod hearing;
mod idling;
mod trouble;
