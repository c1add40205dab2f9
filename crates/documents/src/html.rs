//! The text of an HTML page. Nothing that it refers to is loaded.

use super::Unreadable;

/// Longer lines are wrapped.
const WIDTH: usize = 120;

pub(crate) fn read(bytes: &[u8]) -> Result<String, Unreadable> {
    html2text::from_read(bytes, WIDTH).map_err(|error| Unreadable::Damaged(error.to_string()))
}
