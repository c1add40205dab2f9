//! Who signs in, and what is kept of it.
