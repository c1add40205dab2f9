//! Keeps what the author wrote: removes the quoted mail, the signature, and stray spaces.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern;

/// `On Mon, 3 May 2026, Ann wrote:`, `Am 3. Mai 2026 schrieb Ann:`, and the forms of Outlook. The quoted mail starts here.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?im)^\s*(?:on\b.{4,200}\bwrote:|am\b.{4,200}\bschrieb\b.{0,120}:|le\b.{4,200}\ba écrit\s?:|el\b.{4,200}\bescribió:|-{2,}\s*(?:original message|forwarded message|ursprüngliche nachricht|weitergeleitete nachricht|original-nachricht)\s*-{2,}|_{20,})\s*$",
    )
});
/// The header block of a quoted mail: at least two of these lines in a row.
static HEADERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?im)^(?:from|von|de):\s.+\r?\n(?:(?:sent|gesendet|to|an|cc|date|datum|subject|betreff|envoyé|objet):\s.*\r?\n?)+")
});
/// The start of a signature, typed or added by a phone.
static SIGNATURE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?im)^(?:-- ?|(?:sent from my|get outlook for|gesendet (?:von|mit)|von meinem .{2,30} gesendet)\b.*)\s*$"));
static SPACES: LazyLock<Regex> = LazyLock::new(|| pattern(r"[ \t\u{a0}\u{2007}\u{202f}]+"));
static EMPTY_LINES: LazyLock<Regex> = LazyLock::new(|| pattern(r"\n{3,}"));

pub fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace(['\0', '\u{200b}', '\u{feff}', '\u{ad}'], "");
    let own = own_words(&text);
    let lines: Vec<String> = own.lines().map(|line| SPACES.replace_all(line, " ").trim().to_owned()).collect();
    EMPTY_LINES.replace_all(lines.join("\n").trim(), "\n\n").into_owned()
}

/// Keeps the text up to the first quoted mail or signature. If nothing would be left, everything is kept: a mail that only
/// forwards another is about that other mail.
fn own_words(text: &str) -> String {
    let without_quotes: String =
        text.lines().filter(|line| !line.trim_start().starts_with('>')).fold(String::new(), |all, line| all + line + "\n");
    let starts = [&*QUOTED, &*HEADERS, &*SIGNATURE].into_iter().filter_map(|sign| sign.find(&without_quotes));
    let end = starts.map(|found| found.start()).min().unwrap_or(without_quotes.len());
    match without_quotes[..end].trim() {
        "" if without_quotes.trim().is_empty() => text.to_owned(),
        "" => without_quotes,
        own => own.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_and_what_it_answers_is_not() {
        let english =
            "Yes,   Friday is fine.\r\n\r\nOn Mon, 16 Nov 2026 at 09:00, Ann Lee <ann@example.com> wrote:\r\n> Is Friday fine?\r\n";
        assert_eq!(clean(english), "Yes, Friday is fine.");
        let german = "Passt.\n\nAm 16.11.2026 um 09:00 schrieb Anna Lee <anna@example.com>:\n> Freitag?\n";
        assert_eq!(clean(german), "Passt.");
        let outlook = "Passt so.\n\nVon: Anna Lee <anna@example.com>\nGesendet: Montag, 16. November 2026 09:00\nAn: Bob\nBetreff: Termin\n\nFreitag?";
        assert_eq!(clean(outlook), "Passt so.");
    }

    #[test]
    fn signatures_go() {
        assert_eq!(clean("Call me.\n-- \nBob\nACME Inc.\n+1 555 0100"), "Call me.");
        assert_eq!(clean("Ruf mich an.\n\nVon meinem iPhone gesendet"), "Ruf mich an.");
    }

    #[test]
    fn answers_between_the_lines_are_kept() {
        assert_eq!(clean("> Friday?\nYes.\n> At nine?\nNo, at ten."), "Yes.\nNo, at ten.");
    }

    #[test]
    fn a_mail_that_only_forwards_keeps_what_it_forwards() {
        let forwarded = "---------- Forwarded message ---------\nFrom: Ann\nSubject: Order\n\nPlease send two pumps.";
        assert!(clean(forwarded).contains("two pumps"));
        assert_eq!(clean("> only a quote"), "> only a quote");
    }

    #[test]
    fn spaces_and_invisible_characters_collapse() {
        assert_eq!(clean("a\u{a0} b\t c\u{200b}\n\n\n\n d \0"), "a b c\n\nd");
    }
}
