//! Cases that occur only over a network: gateways, limits, lost responses, servers that are not ours.

pub(crate) mod front;

mod files;
mod hearing;
mod idling;
mod trouble;
