//! The `gleaner` command as people and scripts meet it: the real binary, on a real PostgreSQL.

mod agent;
mod attaching;
mod channels;
mod contacts;
mod dumps;
mod enqueueing;
mod first_minutes;
mod help;
mod keys;
mod lifecycle;
mod listing;
mod mailboxes;
mod mcp;
mod migrating;
mod restoring;
mod runs;
mod serving;
mod signing_in;
mod support;
mod users;
mod working;
