//! What a document is: by its first bytes, then by its name and what the sender says.

pub(super) const PDF: &str = "application/pdf";
pub(super) const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
pub(super) const HTML: &str = "text/html";
pub(super) const MARKDOWN: &str = "text/markdown";
pub(super) const TEXT: &str = "text/plain";

/// The media type. None if it is nothing that we read.
pub(super) fn media_type(bytes: &[u8], name: &str, said: Option<&str>) -> Option<&'static str> {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    let said = said.and_then(|said| said.split(';').next()).map(|said| said.trim().to_ascii_lowercase()).unwrap_or_default();
    if bytes[..bytes.len().min(1024)].windows(5).any(|at| at == b"%PDF-") {
        return Some(PDF);
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return (ending == "docx" || said == DOCX).then_some(DOCX);
    }
    let text = text(bytes)?;
    let start = text.trim_start().get(..15).unwrap_or_default().to_ascii_lowercase();
    let is_html = ["html", "htm", "xhtml"].contains(&ending.as_str())
        || said == HTML
        || start.starts_with("<!doctype html")
        || start.starts_with("<html");
    let is_markdown = ["md", "markdown"].contains(&ending.as_str()) || said == MARKDOWN;
    Some(match (is_html, is_markdown) {
        (_, true) => MARKDOWN,
        (true, _) => HTML,
        _ => TEXT,
    })
}

/// The bytes as text, without a byte order mark. None if they are no text that PostgreSQL can store.
pub(super) fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then(|| text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The last part of a path, without control characters, as the name to show.
pub(super) fn name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control()).take(200).collect();
    let name = name.trim();
    if name.is_empty() || name == "." || name == ".." { "untitled".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_what_its_bytes_say() {
        let of = |bytes: &[u8], name: &str| media_type(bytes, name, None);
        assert_eq!(of(b"%PDF-1.7 \xff\x00", "notes.txt"), Some(PDF), "whatever its name");
        assert_eq!(of(b"PK\x03\x04\x00", "a.docx"), Some(DOCX));
        assert_eq!(of(b"PK\x03\x04\x00", "a.zip"), None);
        assert_eq!(of(b"\x7fELF\x02\x01\x00\xff", "a.txt"), None);
        assert_eq!(of(b"a\0b", "a.txt"), None, "PostgreSQL stores no null character");
        assert_eq!(of(b"<!DOCTYPE html><p>x", "page"), Some(HTML));
        assert_eq!(of(b"# Title", "a.MD"), Some(MARKDOWN));
        assert_eq!(of("Grüße".as_bytes(), "a"), Some(TEXT));
        assert_eq!(media_type(b"# x", "a", Some("text/markdown; charset=utf-8")), Some(MARKDOWN));
    }

    #[test]
    fn a_name_is_never_a_path() {
        assert_eq!(name("../../etc/passwd"), "passwd");
        assert_eq!(name("C:\\Users\\ann\\notes.md"), "notes.md");
        assert_eq!(name("a\u{7}b\n.txt"), "ab.txt");
        for nothing in ["", "/", "..", " \n"] {
            assert_eq!(name(nothing), "untitled");
        }
    }
}
