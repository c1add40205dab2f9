//! What is done to an item: a list of stages, each a checkpoint.
