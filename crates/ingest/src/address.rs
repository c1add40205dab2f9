//! Addresses of senders and recipients, in the normalised form in which they are compared.
//!
//! For rows that are inserted by plain SQL, the part that SQL can do is in
//! `crates/gleaner/sql/systems/crm/functions/normalize_*.sql`.
//! Where the two differ, this one is right, and a contact's own addresses are normalised again with it.

pub mod email;
pub mod phone;
