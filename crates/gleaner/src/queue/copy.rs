//! Rows in COPY's text format.

use std::io::Write as _;

use serde_json::Value;

/// One line of COPY's text format.
pub(super) fn copy_line(buffer: &mut Vec<u8>, names: &[&String], item: &Value) {
    for (i, name) in names.iter().enumerate() {
        if i > 0 {
            buffer.push(b'\t');
        }
        match item.get(name.as_str()) {
            None | Some(Value::Null) => buffer.extend_from_slice(b"\\N"),
            Some(Value::String(text)) => escape(buffer, text),
            Some(other) => escape(buffer, &other.to_string()),
        }
    }
    buffer.push(b'\n');
}

/// The beginning of a line: the key, and the lease value for a row in a bulk range or for a single row.
pub(super) fn copy_key(buffer: &mut Vec<u8>, key: i64, in_range: bool) {
    // Writing to memory cannot fail.
    let _ = write!(buffer, "{key}");
    buffer.extend_from_slice(if in_range { b"\t-1\t" } else { b"\t0\t" });
}

fn escape(buffer: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'\\' => buffer.extend_from_slice(b"\\\\"),
            b'\t' => buffer.extend_from_slice(b"\\t"),
            b'\n' => buffer.extend_from_slice(b"\\n"),
            b'\r' => buffer.extend_from_slice(b"\\r"),
            other => buffer.push(other),
        }
    }
}
