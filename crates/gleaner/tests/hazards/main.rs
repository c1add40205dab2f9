//! The ways such a queue breaks, tried: races, crashes, hostile rows, and a model that must agree over thousands of steps.
//!
//! `GLEANER_TEST_FULL=1` runs the long forms.

#[path = "../world/mod.rs"]
mod world;

mod bell;
mod chaos;
mod model;
mod offenders;
mod races;
mod worker;

/// How much longer the long forms are.
fn scale(factor: usize) -> usize {
    if std::env::var_os("GLEANER_TEST_FULL").is_some_and(|v| !v.is_empty() && v != "0") { factor } else { 1 }
}
