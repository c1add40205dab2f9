//! Addresses in their normal form.

pub mod email;
pub mod phone;
