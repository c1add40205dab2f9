//! Stages that need no model: they count words and match patterns, offline, and say so.
//!
//! # Layout
//!
//! - `clean` is what people meant to write; `words` and `sentences` cut it up; `language` says which it is.
//! - `keywords` and `summary` choose from it; `entities`, `dates`, `money` and `next_steps` find things in it; `facts` lists them.

pub mod clean;
pub mod dates;
pub mod entities;
pub mod facts;
pub mod keywords;
pub mod language;
pub mod money;
pub mod next_steps;
mod numerals;
pub mod summary;
mod words;

use regex::Regex;

/// A pattern of ours; all of them are tried by the tests beside them.
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("our own pattern is one")
}
