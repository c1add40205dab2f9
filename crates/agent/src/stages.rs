//! What a stage can be: built in, a model, a command, a call.

pub mod audio;
pub mod failure;
pub mod text;
