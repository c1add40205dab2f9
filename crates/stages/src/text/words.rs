//! Splits text into sentences and words.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation as _;

/// A full stop after these does not end a sentence, in English or German.
const ABBREVIATIONS: &[&str] = &[
    "dr.", "mr.", "mrs.", "ms.", "prof.", "st.", "no.", "vs.", "e.g.", "i.e.", "etc.", "inc.", "ltd.", "co.", "approx.", "z.b.", "z. b.",
    "b.", "d.h.", "d. h.", "h.", "u.a.", "a.", "bzw.", "ca.", "evtl.", "ggf.", "hr.", "fr.", "nr.", "str.", "tel.", "usw.", "vgl.",
    "inkl.",
];

/// The sentences, trimmed. A line without a full stop at its end counts as one too, because lists and greetings have none.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    text.split("\n\n").flat_map(str::lines).flat_map(in_line).collect()
}

fn in_line(line: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    let mut start = 0;
    for (at, piece) in line.split_sentence_bound_indices() {
        let end = at + piece.len();
        if !goes_on(&line[start..end], &line[end..]) {
            found.push(line[start..end].trim());
            start = end;
        }
    }
    found.push(line[start..].trim());
    found.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    found
}

/// Whether the text ending here is not a full sentence yet: an abbreviation, an initial, the day of a German date.
fn goes_on(so_far: &str, rest: &str) -> bool {
    let last = so_far.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    let Some(stem) = last.strip_suffix('.') else { return rest.is_empty() };
    let day = stem.len() <= 2 && !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_digit());
    rest.is_empty() || ABBREVIATIONS.contains(&last.trim_start_matches('(')) || day || stem.chars().count() == 1
}

/// Words as they are written, without punctuation.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.unicode_words()
}

/// Stop words. If the language is unknown, those of English and German.
pub(super) fn stop_words(language: Option<&str>) -> HashSet<&'static str> {
    match language.and_then(stop_words::lookup) {
        Some(known) => known.iter().copied().chain(SPOKEN.iter().copied()).collect(),
        None => ["en", "de"].into_iter().filter_map(stop_words::lookup).flatten().copied().chain(SPOKEN.iter().copied()).collect(),
    }
}

/// Words that are frequent in mail and speech, and missing from the lists.
const SPOKEN: &[&str] = &[
    "hi",
    "hello",
    "dear",
    "regards",
    "thanks",
    "thank",
    "please",
    "best",
    "kind",
    "yes",
    "no",
    "ok",
    "okay",
    "um",
    "uh",
    "hallo",
    "liebe",
    "lieber",
    "grüße",
    "grüßen",
    "freundlichen",
    "viele",
    "danke",
    "bitte",
    "ja",
    "nein",
    "äh",
    "herr",
    "frau",
    "sehr",
    "geehrte",
    "geehrter",
];

/// Whether a word could be a keyword.
pub(super) fn is_content(word: &str, stop: &HashSet<&'static str>) -> bool {
    word.chars().count() > 2 && word.chars().any(char::is_alphabetic) && !stop.contains(word.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_stop_after_an_abbreviation_ends_nothing() {
        assert_eq!(sentences("I met Dr. Meyer today. He was late!\nBest"), ["I met Dr. Meyer today.", "He was late!", "Best"]);
        assert_eq!(sentences("Wir treffen uns am 3. Mai in Bonn. Bis dann."), ["Wir treffen uns am 3. Mai in Bonn.", "Bis dann."]);
        assert_eq!(sentences("…\n\n- \n"), Vec::<&str>::new());
    }
}
