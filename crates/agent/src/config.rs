//! What an agent is told, by flag, environment and file.
