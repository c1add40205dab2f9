//! Addresses in the one form they are compared in.

pub mod email {
    /// The bare address, in lower case.
    pub fn normalise(text: &str) -> Option<String> {
        let bare = match (text.rfind('<'), text.rfind('>')) {
            (Some(open), Some(close)) if open < close => &text[open + 1..close],
            _ => text,
        };
        let bare = bare.trim().to_lowercase();
        let (local, domain) = bare.rsplit_once('@')?;
        (!local.is_empty() && !domain.is_empty() && !bare.contains(char::is_whitespace)).then_some(bare)
    }
}

pub mod phone {
    const WITHHELD: [&str; 10] = [
        "+266696687",
        "+7378742833",
        "+2562533",
        "+8656696",
        "+86282452253",
        "anonymous",
        "restricted",
        "unknown",
        "unavailable",
        "private",
    ];

    /// E.164, or the plain digits of what is no possible number.
    pub fn normalise(text: &str, _region: &str) -> Option<String> {
        let bare = text.trim();
        let bare = ["whatsapp:", "tel:", "sms:"].iter().find_map(|prefix| bare.strip_prefix(prefix)).unwrap_or(bare);
        if is_withheld(bare) || bare.contains(char::is_alphabetic) || !bare.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        Some(bare.chars().filter(|c| c.is_ascii_digit() || *c == '+').collect())
    }

    /// Whether this stands for a caller who hid their number.
    pub fn is_withheld(text: &str) -> bool {
        WITHHELD.iter().any(|known| text.trim().eq_ignore_ascii_case(known))
    }
}
