//! Who an activity came from: matching, linking by hand, contacts made of unknown senders, and the statement that stores
//! what arrives.

mod creating;
mod http;
mod ingesting;
mod keeping;
mod linking;
mod matching;
mod parsing;
mod plans;
mod sweeping;
mod world;
