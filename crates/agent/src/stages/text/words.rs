//! Text cut into sentences and words.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation as _;

/// After these a full stop ends no sentence, in English or German.
const ABBREVIATIONS: &[&str] = &[
    "dr.", "mr.", "mrs.", "ms.", "prof.", "st.", "no.", "vs.", "e.g.", "i.e.", "etc.", "inc.", "ltd.", "co.", "approx.", "z.b.", "z. b.",
    "b.", "d.h.", "d. h.", "h.", "u.a.", "a.", "bzw.", "ca.", "evtl.", "ggf.", "hr.", "fr.", "nr.", "str.", "tel.", "usw.", "vgl.",
    "inkl.",
];

/// Sentences, trimmed. A line that ends without a full stop is one too: lists and greetings are written so.
pub fn sentences(text: &str) -> Vec<&str> {
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

/// Whether what ends here is no sentence yet: an abbreviation, an initial, the day of a German date.
fn goes_on(so_far: &str, rest: &str) -> bool {
    let last = so_far.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    let Some(stem) = last.strip_suffix('.') else { return rest.is_empty() };
    let day = stem.len() <= 2 && !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_digit());
    rest.is_empty() || ABBREVIATIONS.contains(&last.trim_start_matches('(')) || day || stem.chars().count() == 1
}

/// Words as they are written, without punctuation.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.unicode_words()
}

/// Words that say nothing by themselves. Without a known language, those of English and German.
pub fn stop_words(language: Option<&str>) -> HashSet<&'static str> {
    match language.and_then(stop_words::lookup) {
        Some(known) => known.iter().copied().chain(SPOKEN.iter().copied()).collect(),
        None => ["en", "de"].into_iter().filter_map(stop_words::lookup).flatten().copied().chain(SPOKEN.iter().copied()).collect(),
    }
}

/// What mail and speech are full of, and the lists lack.
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

/// A word that could be a keyword.
pub fn is_content(word: &str, stop: &HashSet<&'static str>) -> bool {
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
