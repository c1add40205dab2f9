//! The text of a DOCX: body and footnotes, headings as Markdown.

use std::io::{Cursor, Read as _};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;

use super::Unreadable;

/// No document that people write has more.
const ENTRIES: usize = 5_000;
const DEPTH: usize = 256;
/// Bytes of one part, unpacked.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Text does not pack better than this.
const RATIO: u64 = 100;
/// Below this size the ratio says nothing.
const SMALL: u64 = 1024 * 1024;

pub(crate) fn read(bytes: &[u8]) -> Result<String, Unreadable> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| Unreadable::Damaged(error.to_string()))?;
    if archive.len() > ENTRIES {
        return Err(Unreadable::Refused("it has too many parts"));
    }
    let body = part(&mut archive, "word/document.xml")?.ok_or_else(|| Unreadable::Damaged("it has no word/document.xml".to_owned()))?;
    let mut text = text_of(&body)?;
    if let Some(notes) = part(&mut archive, "word/footnotes.xml")? {
        text.push('\n');
        text.push_str(&text_of(&notes)?);
    }
    Ok(text)
}

/// One part, unpacked. The size that the archive states is not believed.
fn part(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<Option<Vec<u8>>, Unreadable> {
    let damaged = |error: &dyn std::fmt::Display| Unreadable::Damaged(format!("{name}: {error}"));
    let file = match archive.by_name(name) {
        Ok(file) => file,
        Err(zip::result::ZipError::FileNotFound) => return Ok(None),
        Err(error) => return Err(damaged(&error)),
    };
    let packed = file.compressed_size();
    let mut part = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut part).map_err(|error| damaged(&error))?;
    let size = part.len() as u64;
    if size > LARGEST || size > SMALL && size / RATIO > packed {
        return Err(Unreadable::Refused("it unpacks to far more than a text has"));
    }
    Ok(Some(part))
}

fn text_of(xml: &[u8]) -> Result<String, Unreadable> {
    let mut reader = Reader::from_reader(xml);
    let (mut text, mut paragraph) = (String::new(), String::new());
    let (mut depth, mut heading, mut in_text) = (0, 0, false);
    // The depth of an element whose content is not the document's own text.
    let mut skipped: Option<usize> = None;
    loop {
        match reader.read_event().map_err(|error| Unreadable::Damaged(error.to_string()))? {
            Event::Eof => return Ok(text + &paragraph),
            Event::Start(start) => {
                depth += 1;
                if depth > DEPTH {
                    return Err(Unreadable::Refused("it is nested too deep"));
                }
                match start.name().as_ref() {
                    // Older programs' form of what stands beside it, and what was deleted.
                    b"mc:Fallback" | b"w:del" | b"w:moveFrom" if skipped.is_none() => skipped = Some(depth),
                    b"w:t" => in_text = true,
                    b"w:p" => heading = 0,
                    b"w:pStyle" => heading = level(&start),
                    _ => {}
                }
            }
            Event::Empty(empty) if skipped.is_none() => match empty.name().as_ref() {
                b"w:tab" => paragraph.push('\t'),
                b"w:br" | b"w:cr" => paragraph.push('\n'),
                b"w:noBreakHyphen" => paragraph.push('-'),
                b"w:pStyle" => heading = level(&empty),
                _ => {}
            },
            Event::Text(piece) if in_text && skipped.is_none() => {
                paragraph.push_str(&piece.xml10_content().map_err(|error| Unreadable::Damaged(error.to_string()))?);
            }
            Event::GeneralRef(reference) if in_text && skipped.is_none() => paragraph.push(character(&reference)),
            Event::End(end) => {
                match end.name().as_ref() {
                    b"w:t" => in_text = false,
                    b"w:p" => {
                        if heading > 0 && !paragraph.trim().is_empty() {
                            text.push_str(&"#".repeat(heading));
                            text.push(' ');
                        }
                        text.push_str(&paragraph);
                        text.push_str("\n\n");
                        paragraph.clear();
                    }
                    _ => {}
                }
                if skipped == Some(depth) {
                    skipped = None;
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
}

/// The level of a heading by the name of its style: `Heading2`, in any language that numbers them, or `Title`.
fn level(style: &BytesStart<'_>) -> usize {
    let name = style.try_get_attribute("w:val").ok().flatten().map(|value| value.value.to_ascii_lowercase()).unwrap_or_default();
    if name == b"title" {
        return 1;
    }
    let known: [&[u8]; 4] = [b"heading", b"berschrift", b"titre", b"ttulo"];
    let is_heading = known.iter().any(|word| name.windows(word.len()).any(|at| at == *word));
    match name.last() {
        Some(digit) if is_heading && (b'1'..=b'6').contains(digit) => usize::from(digit - b'0'),
        _ => 0,
    }
}

/// The five entities of XML, and numbers. Nothing else is resolved.
fn character(reference: &quick_xml::events::BytesRef<'_>) -> char {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return character;
    }
    match &**reference {
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        b"quot" => '"',
        b"apos" => '\'',
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_breaks_headings_and_tables_are_read_and_deletions_are_not() {
        let xml = br#"<w:document><w:body>
            <w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Pump &amp; seal</w:t></w:r></w:p>
            <w:p><w:r><w:t xml:space="preserve">one </w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>
            <w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
            <mc:AlternateContent><mc:Choice><w:p><w:r><w:t>box</w:t></w:r></w:p></mc:Choice><mc:Fallback><w:p><w:r><w:t>box</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>
            </w:body></w:document>"#;
        let text = text_of(xml).expect("readable");
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, ["## Pump & seal", "one two", "three", "cell", "box"]);
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let deep = format!("<w:document>{}", "<w:p>".repeat(300));
        assert_eq!(text_of(deep.as_bytes()), Err(Unreadable::Refused("it is nested too deep")));
    }
}
