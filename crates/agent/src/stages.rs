//! What a stage can be: built in, a model, a command, a call.
