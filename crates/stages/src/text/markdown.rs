//! Splits Markdown, or any text, into headings and sentences.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern;
use super::words::sentences;

/// A heading or a sentence, without its marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Heading(String),
    Sentence(String),
}

static MARKER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?"));
static LINK: LazyLock<Regex> = LazyLock::new(|| pattern(r"!?\[([^\]]*)\]\(([^)\s]*)[^)]*\)"));

/// The pieces of a text in order. Code blocks are left out. Lines of one paragraph are joined, because writers wrap sentences.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut paragraph = String::new();
    let mut in_code = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
            end(&mut paragraph, &mut found);
        } else if in_code {
        } else if let Some(heading) = heading(line) {
            end(&mut paragraph, &mut found);
            found.push(Piece::Heading(heading));
        } else if line.is_empty() {
            end(&mut paragraph, &mut found);
        } else {
            let line = line.trim_start_matches(['>', '|', ' ']);
            if let Some(marker) = MARKER.find(line) {
                end(&mut paragraph, &mut found);
                paragraph.push_str(&line[marker.end()..]);
            } else {
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(line);
            }
        }
    }
    end(&mut paragraph, &mut found);
    found
}

fn end(paragraph: &mut String, found: &mut Vec<Piece>) {
    let plain = plain(paragraph);
    found.extend(sentences(&plain).into_iter().map(|sentence| Piece::Sentence(sentence.to_owned())));
    paragraph.clear();
}

fn heading(line: &str) -> Option<String> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let title = plain(title.trim_end_matches('#'));
    ((1..=6).contains(&level) && title.chars().any(char::is_alphanumeric) && line[level..].starts_with(' ')).then_some(title)
}

/// The text without the marks of emphasis and links.
fn plain(text: &str) -> String {
    LINK.replace_all(text, "$1 $2").replace("**", "").replace("__", "").replace('`', "").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_lists_and_wrapped_lines_are_distinguished() {
        let text =
            "# The *plan*\nWe ship\non **Friday**. It rains.\n\n- [x] Call Ann\n2. Write Bob\n```\nlet x = 1;\n```\n#hashtag is text";
        let sentence = |text: &str| Piece::Sentence(text.to_owned());
        assert_eq!(
            pieces(text),
            [
                Piece::Heading("The *plan*".into()),
                sentence("We ship on Friday."),
                sentence("It rains."),
                sentence("Call Ann"),
                sentence("Write Bob"),
                sentence("#hashtag is text"),
            ]
        );
    }
}
