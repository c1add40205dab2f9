//! The webhook endpoint and the whole server behind it, over HTTP, with a database of its own per test.

mod bodies;
mod chaos;
mod commits;
mod connections;
mod hostile;
mod keys;
mod limits;
mod outages;
mod properties;
mod receiving;
mod refusing;
mod replaying;
mod secrets;
mod sender;
mod stopping;
pub(crate) mod support;
mod sweeping;
mod vectors;
