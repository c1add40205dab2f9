//! Keys by the names that browsers give them, in the form that the WebDriver standard sends.

/// Names and code points of the standard's table.
const KEYS: &[(&str, char)] = &[
    ("Backspace", '\u{e003}'),
    ("Tab", '\u{e004}'),
    ("Enter", '\u{e007}'),
    ("Shift", '\u{e008}'),
    ("Control", '\u{e009}'),
    ("Alt", '\u{e00a}'),
    ("Pause", '\u{e00b}'),
    ("Escape", '\u{e00c}'),
    ("PageUp", '\u{e00e}'),
    ("PageDown", '\u{e00f}'),
    ("End", '\u{e010}'),
    ("Home", '\u{e011}'),
    ("ArrowLeft", '\u{e012}'),
    ("ArrowUp", '\u{e013}'),
    ("ArrowRight", '\u{e014}'),
    ("ArrowDown", '\u{e015}'),
    ("Insert", '\u{e016}'),
    ("Delete", '\u{e017}'),
    ("F1", '\u{e031}'),
    ("F2", '\u{e032}'),
    ("F3", '\u{e033}'),
    ("F4", '\u{e034}'),
    ("F5", '\u{e035}'),
    ("F6", '\u{e036}'),
    ("F7", '\u{e037}'),
    ("F8", '\u{e038}'),
    ("F9", '\u{e039}'),
    ("F10", '\u{e03a}'),
    ("F11", '\u{e03b}'),
    ("F12", '\u{e03c}'),
    ("Meta", '\u{e03d}'),
];

/// A named key, else the first character.
pub(super) fn value(key: &str) -> String {
    let named = KEYS.iter().find(|(name, _)| *name == key).map(|(_, code)| *code);
    named.or_else(|| key.chars().next()).map(String::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn named_keys_have_code_points_and_characters_are_themselves() {
        assert_eq!((super::value("Enter").as_str(), super::value("ü").as_str()), ("\u{e007}", "ü"));
    }
}
