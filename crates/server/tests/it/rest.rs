//! `/rest/v1` over HTTP, on a migrated database: the tables of the wire contract, row by row.

mod access;
mod bans;
mod computing;
mod embedding;
mod errors;
mod filters;
mod functions;
mod hostile;
mod limits;
mod login;
mod origin;
mod preferences;
mod reading;
mod related;
mod relating;
mod schema_changes;
mod searching;
mod spreading;
mod transactions;
mod values;
mod world;
mod writing;
