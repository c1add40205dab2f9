//! Gmail, with a local server that implements the documented API.

mod asking;
mod consenting;
mod google;
mod granting;
mod pushing;
mod reading;
mod serving;
mod world;
