//! Stages that need no model: they count words and match patterns, offline, and say so.
//!
//! # Layout
//!
//! - `clean` removes what the author did not write; `words` and `sentences` split the text; `language` detects its language.
//! - `keywords` and `summary` select from it; `entities`, `dates`, `money` and `next_steps` find things in it; `facts` lists
//!   them.
//! - `blocks`, `context_items` and `relationships` make a dump into insights, entities and their connections; `markdown` splits it.

pub mod blocks;
pub mod clean;
pub mod context_items;
pub mod dates;
pub mod entities;
pub mod facts;
pub mod keywords;
pub mod language;
mod markdown;
pub mod money;
pub mod next_steps;
mod numerals;
pub mod relationships;
pub mod summary;
mod words;

use regex::Regex;

/// Compiles one of our own patterns. The tests cover all of them.
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("our own pattern is one")
}
