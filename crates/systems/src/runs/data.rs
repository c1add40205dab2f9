//! The data of a run: a line for each time that the recording is replayed, and `{{name}}` in the recording.

use std::collections::BTreeMap;

use serde_json::Value;

/// One line of the data, by the names at its head.
pub(super) type Line = BTreeMap<String, String>;

/// The lines of a CSV text. Without data there is one line without values.
pub fn lines(text: Option<&str>) -> Result<Vec<BTreeMap<String, String>>, String> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(vec![Line::new()]) };
    // Spreadsheets begin a file with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(text.as_bytes());
    let wrong = |error: csv::Error| format!("the data is not CSV: {error}");
    let names: Vec<String> = reader.headers().map_err(wrong)?.iter().map(str::to_owned).collect();
    if let Some(twice) = names.iter().enumerate().find_map(|(n, name)| names[..n].contains(name).then_some(name)) {
        return Err(format!("the data has two columns {twice:?}"));
    }
    let mut lines = Vec::new();
    for record in reader.records() {
        lines.push(names.iter().cloned().zip(record.map_err(wrong)?.iter().map(str::to_owned)).collect());
    }
    if lines.is_empty() { Err("the data has names at its head and no line below".to_owned()) } else { Ok(lines) }
}

/// The value with every `{{name}}` in its texts replaced.
pub(super) fn fill(value: &Value, look: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(fill_text(text, look)?),
        Value::Array(list) => Value::Array(list.iter().map(|value| fill(value, look)).collect::<Result<_, _>>()?),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, value)| Ok((name.clone(), fill(value, look)?))).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

fn fill_text(text: &str, look: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else { break };
        filled += before;
        filled += &look(name.trim())?;
        rest = after;
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_line_of_the_data_is_a_row_and_none_is_one() {
        let two = lines(Some("\u{feff}name, mail\nAda,ada@example.com\n\"Lovelace, A.\",x\n")).expect("CSV");
        assert_eq!((two.len(), two[1]["name"].as_str(), two[0]["mail"].as_str()), (2, "Lovelace, A.", "ada@example.com"));
        assert_eq!(lines(None).expect("none"), [Line::new()]);
        for (text, why) in [("a,b\n1\n", "not CSV"), ("a,a\n1,2\n", "two columns"), ("a,b\n", "no line")] {
            assert!(lines(Some(text)).expect_err(text).contains(why), "{text:?}");
        }
    }

    #[test]
    fn names_in_braces_are_replaced_once_in_every_text() {
        let mut look = |name: &str| if name == "name" { Ok("{{name}}&".to_owned()) } else { Err(format!("no {name}")) };
        let filled = fill(&json!({"url": "https://a/{{ name }}?{{name}}", "n": 3, "list": ["{{name}}"], "open": "{{"}), &mut look);
        assert_eq!(filled, Ok(json!({"url": "https://a/{{name}}&?{{name}}&", "n": 3, "list": ["{{name}}&"], "open": "{{"})));
        assert_eq!(fill(&json!("{{x}}"), &mut look), Err("no x".to_owned()));
    }
}
