//! Failure scenarios of a queue: races, crashes, rows that reject changes, and a model that must agree over thousands of steps.
//!
//! `GLEANER_TEST_FULL=1` runs the long forms.

#[path = "../world/mod.rs"]
mod world;

mod chaos;
mod model;
mod races;
mod rejected_rows;
mod waking;
mod worker;

/// How much longer the long forms are.
fn scale(factor: usize) -> usize {
    if std::env::var_os("GLEANER_TEST_FULL").is_some_and(|v| !v.is_empty() && v != "0") { factor } else { 1 }
}
