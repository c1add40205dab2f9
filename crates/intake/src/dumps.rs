//! Documents that people add to a basket: kept as files, each with a row of `raw_dumps`, which queues it for processing.
//!
//! # Layout
//!
//! - `add` stores a document and its row; `kind` decides what a document is; `file` serves and deletes it.
//! - [`routes`] has the routes.

mod add;
mod file;
mod kind;
mod routes;

use std::sync::Arc;

use gleaner_http::database::Pool;
use serde::Serialize;
use tokio::sync::Semaphore;
use utoipa::ToSchema;
use uuid::Uuid;

pub use self::add::Upload;
pub use self::file::keep_forgetting;
pub use self::routes::router;
use crate::files::Files;

/// The largest document that is accepted, in bytes (`GLEANER_DOCUMENT_LIMIT`).
pub const LIMIT: u64 = 32 * 1024 * 1024;

/// A document is held in memory while it is stored. This many at a time.
const AT_A_TIME: usize = 4;

/// What adding documents needs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Dumps {
    pool: Pool,
    files: Files,
    limit: u64,
    turns: Arc<Semaphore>,
}

impl Dumps {
    pub fn new(pool: Pool, files: Files, limit: u64) -> Self {
        Self { pool, files, limit, turns: Arc::new(Semaphore::new(AT_A_TIME)) }
    }
}

/// The largest document, from the environment.
pub fn limit_from_env() -> Result<u64, String> {
    match std::env::var("GLEANER_DOCUMENT_LIMIT").ok().filter(|text| !text.is_empty()) {
        Some(text) => text.parse().map_err(|_| format!("GLEANER_DOCUMENT_LIMIT is a number of bytes, not {text:?}")),
        None => Ok(LIMIT),
    }
}

/// A document that was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Added {
    pub id: Uuid,
    pub basket_id: Uuid,
    pub name: String,
    /// In bytes.
    pub size: i64,
    pub media_type: String,
    pub sha256: String,
    /// Whether the basket had this very file before. Then it is not processed again.
    pub known: bool,
}

/// Why a document was not added.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("there is no such basket")]
    Basket,
    #[error("you have no basket yet: make a workspace first, with the function fn_workspace_create")]
    NoBasket,
    #[error("the document is empty")]
    Empty,
    #[error("the document has more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("documents are text, Markdown, HTML, PDF or DOCX, and this is none of them")]
    Kind,
    #[error("the document was not sent whole: {0}")]
    Source(String),
    #[error(transparent)]
    Files(#[from] crate::files::Error),
    #[error(transparent)]
    Database(#[from] gleaner_http::database::Error),
}
