//! E-mail addresses.

/// The bare address out of what a sender wrote, in lower case.
pub fn normalise(text: &str) -> Option<String> {
    let bare = match (text.rfind('<'), text.rfind('>')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    };
    let bare = bare.trim();
    let (local, domain) = bare.rsplit_once('@')?;
    let whole = !local.is_empty() && !domain.is_empty() && !bare.contains(char::is_whitespace);
    whole.then(|| bare.to_lowercase())
}
