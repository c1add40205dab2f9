//! The `gleaner` command as people and scripts meet it: the real binary, on a real PostgreSQL.

mod agent;
mod attaching;
mod channels;
mod contacts;
mod enqueueing;
mod help;
mod keys;
mod lifecycle;
mod listing;
mod mailboxes;
mod migrating;
mod serving;
mod signing_in;
mod support;
mod users;
mod working;
