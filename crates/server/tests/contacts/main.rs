//! Who an activity came from: matching, linking by hand, contacts made of unknown senders, and the statement that stores
//! what arrives.

mod ingesting;
mod world;
