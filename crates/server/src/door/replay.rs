//! Reads kept requests again.
