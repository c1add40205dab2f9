//! Gmail against a local server that speaks the documented API.

mod asking;
mod consenting;
mod google;
mod granting;
mod pushing;
mod reading;
mod serving;
mod world;
