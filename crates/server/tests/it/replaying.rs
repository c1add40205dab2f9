//! Kept requests, read again.
