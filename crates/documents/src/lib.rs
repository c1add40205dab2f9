//! Reads the text of a PDF, a DOCX or an HTML document.
//!
//! Such a document may be damaged, or made to exhaust memory, time or the stack, which no program can catch in itself. So
//! [`child`] runs in a process of its own, with limits. The caller starts it and treats its death as a failure to read the document.

mod child;
mod docx;
mod html;
mod lines;
mod pdf;

pub use self::child::child;

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Pdf,
    Docx,
    Html,
}

impl Kind {
    /// By its media type. None for everything else; plain text and Markdown need no reader.
    pub fn of(media_type: &str) -> Option<Self> {
        match media_type {
            "application/pdf" => Some(Self::Pdf),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => Some(Self::Docx),
            "text/html" => Some(Self::Html),
            _ => None,
        }
    }
}

/// Why there is no text. Trying again gives the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("the document is damaged: {0}")]
    Damaged(String),
    #[error("the document is refused: {0}")]
    Refused(&'static str),
    #[error("the document has no text: if it is a scan, read it with OCR first")]
    NoText,
}

/// The text of a document, as Markdown where the document has headings. Runs in this process: call it from [`child`] only.
fn read(kind: Kind, bytes: &[u8]) -> Result<String, Unreadable> {
    let text = match kind {
        Kind::Pdf => pdf::read(bytes)?,
        Kind::Docx => docx::read(bytes)?,
        Kind::Html => html::read(bytes)?,
    };
    let text = lines::tidy(&text);
    if text.is_empty() { Err(Unreadable::NoText) } else { Ok(text) }
}
