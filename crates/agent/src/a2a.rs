//! The queue as an agent among agents: its card, and tasks over the acts.
