//! `/auth/v1` over HTTP, with a real database: every row of the contract's tables, and what must not happen.

mod admin;
mod errors;
mod first;
mod guessing;
mod keys;
mod links;
mod logout;
mod people;
mod refresh;
mod sessions;
mod signup;
mod support;
mod user;
