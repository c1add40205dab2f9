//! Times, numbers and texts in a readable form.

use serde_json::Value;

/// A duration, rounded: `12 ms`, `40 s`, `5 min`, `3 h`, `12 d`.
pub(crate) fn span(seconds: f64) -> String {
    let seconds = seconds.abs();
    match seconds {
        s if s < 0.9995 => format!("{:.0} ms", s * 1000.0),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// A moment, relative to now.
pub(crate) fn moment(seconds_from_now: f64) -> String {
    if seconds_from_now > 0.0 { format!("in {}", span(seconds_from_now)) } else { format!("{} ago", span(seconds_from_now)) }
}

/// `1 item`, `2 items`.
pub(crate) fn count(n: impl Into<i128>, noun: &str) -> String {
    let n = n.into();
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Text from a row may contain anything, so control characters are replaced before it reaches a terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// A value on one line: text as it is, everything else as JSON.
pub(crate) fn brief(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The text of a member, empty when it is missing.
pub(crate) fn member(value: &Value, name: &str) -> String {
    brief(&value[name])
}

/// A word as written inside double quotes in a shell.
pub(crate) fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// A word as one would type it: in single quotes only where a shell needs them.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rough_and_short() {
        let shown: Vec<String> = [0.04, 12.3, 89.0, 300.0, 7200.0, 900_000.0].into_iter().map(span).collect();
        assert_eq!(shown, ["40 ms", "12 s", "89 s", "5 min", "2 h", "10 d"]);
        assert_eq!((moment(-300.0), moment(30.0)), ("5 min ago".into(), "in 30 s".into()));
    }

    #[test]
    fn quoted_words_mean_themselves_to_a_shell() {
        assert_eq!(double_quoted(r#"a"b$c`d\e"#), r#""a\"b\$c\`d\\e""#);
        assert_eq!((shell_word("/a/b-c"), shell_word("it's")), ("/a/b-c".into(), r"'it'\''s'".into()));
    }

    #[test]
    fn a_payload_cannot_command_the_terminal() {
        assert_eq!(brief(&Value::String("a\u{1b}[2Jb\nc".into())), "a\u{fffd}[2Jb c");
    }
}
