//! Parses small numbers written as words, and large ones with German or English separators.

/// `two`, `zwei`, `2`.
pub(super) fn small(word: &str) -> Option<i64> {
    let word = word.to_lowercase();
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    const WORDS: &[(&[&str], i64)] = &[
        (&["a", "an", "one", "ein", "eine", "einem", "einer", "einen"], 1),
        (&["two", "zwei", "couple"], 2),
        (&["three", "drei"], 3),
        (&["four", "vier"], 4),
        (&["five", "fünf"], 5),
        (&["six", "sechs"], 6),
        (&["seven", "sieben"], 7),
        (&["eight", "acht"], 8),
        (&["nine", "neun"], 9),
        (&["ten", "zehn"], 10),
        (&["eleven", "elf"], 11),
        (&["twelve", "zwölf"], 12),
        (&["fourteen", "vierzehn"], 14),
    ];
    WORDS.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, number)| *number)
}

/// `1.234,56`, `1,234.56`, `1'234.50` and `12,5` as a decimal with a point. None if it cannot be determined.
pub(super) fn decimal(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !matches!(c, '\'' | '’' | ' ' | '\u{a0}' | '\u{202f}')).collect();
    let (comma, point) = (text.rfind(','), text.rfind('.'));
    let mark = match (comma, point) {
        // Both separators are present: the last one is the decimal mark.
        (Some(comma), Some(point)) => Some(comma.max(point)),
        // Only one separator is present: if three digits follow it, or if it occurs several times, it separates thousands.
        (Some(at), None) | (None, Some(at)) => {
            let mark = &text[at..=at];
            (text.matches(mark).count() == 1 && text.len() - at - 1 != 3).then_some(at)
        }
        (None, None) => None,
    };
    let (whole, part) = mark.map_or((text.as_str(), ""), |at| (&text[..at], &text[at + 1..]));
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let (whole, part) = (digits(whole), digits(part));
    if whole.is_empty() {
        return None;
    }
    Some(if part.is_empty() { whole } else { format!("{whole}.{part}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_their_writers_meant_them() {
        for (written, meant) in [
            ("1.234,56", "1234.56"),
            ("1,234.56", "1234.56"),
            ("1'234.50", "1234.50"),
            ("12,5", "12.5"),
            ("1.000", "1000"),
            ("2,500,000", "2500000"),
            ("49.90", "49.90"),
        ] {
            assert_eq!(decimal(written).as_deref(), Some(meant), "{written}");
        }
        assert_eq!((small("zwei"), small("12"), small("many")), (Some(2), Some(12), None));
    }
}
