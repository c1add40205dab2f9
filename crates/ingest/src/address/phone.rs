//! Telephone numbers.

/// E.164, or nothing.
pub fn normalise(text: &str, region: &str) -> Option<String> {
    let _ = region;
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let plain = text.chars().all(|c| c.is_ascii_digit() || "+-(). ".contains(c));
    (plain && text.starts_with('+') && digits.len() >= 7).then(|| format!("+{digits}"))
}
