//! Screenshots of runs: kept as files, each with a row of `run_artefacts`, and deleted when their time is over.
//!
//! # Layout
//!
//! - `artefact` stores, serves and deletes; [`routes`] has the routes.

mod artefact;
mod routes;

use gleaner_http::database::Pool;

pub use self::artefact::{Artefact, Failure, keep_forgetting};
pub use self::routes::router;
use crate::files::Files;

/// The largest artefact that is accepted, in bytes.
pub const LIMIT: usize = 5_000_000;

/// What keeping screenshots needs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Artefacts {
    pool: Pool,
    files: Files,
}

impl Artefacts {
    pub fn new(pool: Pool, files: Files) -> Self {
        Self { pool, files }
    }
}
