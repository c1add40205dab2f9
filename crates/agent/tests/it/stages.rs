//! Stages one by one: what they send, how they take an answer, and how they end.

mod commands;
mod models;
mod openai;
