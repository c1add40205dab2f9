//! The agent's own page, its metrics and its health.
