//! Who an activity came from: matching, linking by a person, creating contacts for unknown senders, and the statement that
//! stores events.

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
