//! Documents from the command line: added, read by the agent of `gleaner up`, and shown.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{GLEANER, Gleaner, Ran};

const PDF: &str = "application/pdf";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// What the reader makes of these bytes.
fn read(media_type: &str, bytes: &[u8]) -> Ran {
    let mut child = std::process::Command::new(GLEANER)
        .args(["read-document", media_type])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the reader runs");
    // A reader that dies closes the pipe.
    let _ = child.stdin.take().expect("piped").write_all(bytes);
    Ran::from(child.wait_with_output().expect("the reader ends"))
}

/// A PDF of these objects, numbered from one; the first is the catalogue.
fn pdf(objects: &[String]) -> Vec<u8> {
    let mut text = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    for (n, object) in objects.iter().enumerate() {
        places.push(text.len());
        text += &format!("{} 0 obj\n{object}\nendobj\n", n + 1);
    }
    let start = text.len();
    text += &format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    places.iter().for_each(|place| text += &format!("{place:010} 00000 n \n"));
    text += &format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1);
    text.into_bytes()
}

/// One page that draws this, with a font and what else it may use.
fn page(content: &str, resources: &str, more: &[String]) -> Vec<u8> {
    let stream = |content: &str, entries: &str| format!("<< {entries} /Length {} >>\nstream\n{content}\nendstream", content.len());
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> {resources} >> >>"
        ),
        stream(content, ""),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    objects.extend(more.iter().cloned());
    pdf(&objects)
}

/// An archive with one part, stored as it is.
fn zip(name: &str, bytes: &[u8]) -> Vec<u8> {
    let crc = !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    });
    let (size, length) = (u32::try_from(bytes.len()).expect("small"), u16::try_from(name.len()).expect("short"));
    let sizes = [crc.to_le_bytes(), size.to_le_bytes(), size.to_le_bytes()].concat();
    let mut zip = [&b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0"[..], &sizes, &length.to_le_bytes(), &[0, 0], name.as_bytes(), bytes].concat();
    let start = u32::try_from(zip.len()).expect("small");
    let central = [&b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0"[..], &sizes, &length.to_le_bytes(), &[0; 16], name.as_bytes()].concat();
    let end = [
        &b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..],
        &u32::try_from(central.len()).expect("small").to_le_bytes(),
        &start.to_le_bytes(),
        &[0, 0],
    ];
    zip.extend(central);
    zip.extend(end.concat());
    zip
}

#[test]
fn pdf_docx_and_html_are_read_and_what_cannot_be_read_is_the_documents_fault() {
    let said = read(PDF, &page("BT /F1 12 Tf 72 700 Td (Forty pumps are ordered.) Tj ET", "", &[]));
    assert_eq!((said.code, said.out.trim()), (0, "Forty pumps are ordered."), "{said:?}");
    let docx = br#"<w:document><w:body><w:p><w:r><w:t>Forty pumps</w:t></w:r></w:p></w:body></w:document>"#;
    let said = read(DOCX, &zip("word/document.xml", docx));
    assert_eq!((said.code, said.out.trim()), (0, "Forty pumps"), "{said:?}");
    let said =
        read("text/html", b"<html><style>p { color: red }</style><h1>Pumps</h1><p>Forty <b>are</b> ordered.</p><script>x()</script>");
    assert!(said.code == 0 && said.out.contains("# Pumps") && !said.out.contains("color") && !said.out.contains("x()"), "{said:?}");

    for (media_type, bytes, why) in [
        (PDF, page("", "", &[]), "no text"),
        (PDF, b"%PDF-1.4 and nothing else".to_vec(), "damaged"),
        (DOCX, zip("word/other.xml", docx), "no word/document.xml"),
        (DOCX, b"PK\x03\x04 and nothing else".to_vec(), "damaged"),
        ("image/png", b"x".to_vec(), "none that is read"),
    ] {
        let said = read(media_type, &bytes);
        assert!(said.code == 65 && said.out.is_empty() && said.err.contains(why), "{media_type} {why}: {said:?}");
    }
}

/// A form that draws itself ends the reader by its stack or by its limits, and nobody else.
#[test]
fn a_hostile_document_ends_only_its_reader() {
    let form = "/Fm1 Do";
    let form = format!(
        "<< /Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources << /XObject << /Fm1 6 0 R >> >> /Length {} >>\nstream\n{form}\nendstream",
        form.len()
    );
    let said = read(PDF, &page("/Fm1 Do", "/XObject << /Fm1 6 0 R >>", &[form]));
    assert_ne!(said.code, 0, "{said:?}");
}

#[test]
fn a_document_added_by_the_command_line_is_read_by_the_agent() {
    let gleaner = Gleaner::at_home();
    gleaner.json(&["up", "--detach"]);
    let pdf = gleaner.folder.join("order.pdf");
    std::fs::write(&pdf, page("BT /F1 12 Tf 72 700 Td (We decided to order forty pumps from Meyer AG.) Tj ET", "", &[])).expect("a file");
    let notes = gleaner
        .file("trial.md", "# Pump trial\n\nAda Lovelace of Meyer AG tested the pumps. Please send Ada Lovelace the invoice by Friday.\n");
    let said = gleaner.ok(&["dumps", "add", "--wait", pdf.to_str().expect("plain"), &notes]);
    assert!(said.contains("order.pdf") && said.contains("application/pdf") && said.contains("insight"), "{said}");
    let listed = gleaner.json(&["dumps", "list"]);
    let listed: Vec<&Value> = listed.as_array().expect("a list").iter().collect();
    assert!(listed.iter().all(|dump| dump["state"] == "completed" && dump["progress"]["percent"] == 100), "{listed:?}");
    let trial = listed.iter().find(|dump| dump["name"] == "trial.md").expect("listed");
    let shown = gleaner.ok(&["dumps", "show", trial["id"].as_str().expect("an id")]);
    assert!(shown.contains("Ada Lovelace") && shown.contains("INSIGHTS") && shown.contains("CONNECTIONS"), "{shown}");
    assert!(gleaner.ok(&["dumps", "add", &notes]).contains("known"), "the same file twice is one");

    // A document that nobody can read fails at once, for good, and says why.
    let scan = gleaner.folder.join("scan.pdf");
    std::fs::write(&scan, page("", "", &[])).expect("a file");
    let failed = gleaner.run(&["dumps", "add", "--wait", scan.to_str().expect("plain")]);
    assert!(failed.code == 1 && failed.out.contains("has no text"), "{failed:?}");
}
