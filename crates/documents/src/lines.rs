//! What all readers have to tidy up.

/// Letters that fonts join, written apart again.
const JOINED: [(char, &str); 7] = [
    ('\u{fb00}', "ff"),
    ('\u{fb01}', "fi"),
    ('\u{fb02}', "fl"),
    ('\u{fb03}', "ffi"),
    ('\u{fb04}', "ffl"),
    ('\u{fb05}', "st"),
    ('\u{fb06}', "st"),
];

/// The text without control characters, joined letters, spaces at the ends of lines, and more than one empty line.
pub(crate) fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let line = line.trim_end();
        if line.trim().is_empty() {
            empty += 1;
            continue;
        }
        if !tidy.is_empty() {
            tidy.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        empty = 0;
        for letter in line.chars().filter(|letter| !letter.is_control() || *letter == '\t') {
            match JOINED.iter().find(|(joined, _)| *joined == letter) {
                Some((_, apart)) => tidy.push_str(apart),
                None => tidy.push(letter),
            }
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::tidy;

    #[test]
    fn joined_letters_and_empty_lines_are_tidied() {
        assert_eq!(tidy("\n\n\u{fb01}ne  \n\n\n\n o\u{fb03}ce\u{0}\n\n"), "fine\n\n office");
    }
}
