//! Single stages: what they send, how they handle the response, and how they end.

mod commands;
mod models;
mod openai;
