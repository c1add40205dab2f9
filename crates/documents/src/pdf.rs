//! The text layer of a PDF.

use super::Unreadable;

pub(crate) fn read(bytes: &[u8]) -> Result<String, Unreadable> {
    pdf_extract::extract_text_from_mem(bytes).map_err(|error| Unreadable::Damaged(error.to_string()))
}
