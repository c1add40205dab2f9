//! Who is on the other end, in the one form addresses are compared in.
//!
//! What SQL can do of this for rows that are inserted plainly is in `sql/systems/crm/functions/normalize_*.sql`; where the
//! two differ, this one is right, and a contact's own addresses are read again with it.

pub mod email;
pub mod phone;
