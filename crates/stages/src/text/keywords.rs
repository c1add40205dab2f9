//! The keywords of a text: words that are repeated and are not stop words.

use std::collections::HashMap;

use super::words::{is_content, stop_words, words};

/// The most significant words, best first, as they were first written.
pub fn keywords(text: &str, language: Option<&str>, most: usize) -> Vec<String> {
    let stop = stop_words(language);
    let without_addresses: String =
        text.split_whitespace().filter(|word| !word.contains(['@', '/']) && !word.starts_with("www.")).collect::<Vec<_>>().join(" ");
    let mut seen: HashMap<String, (usize, usize, &str)> = HashMap::new();
    for (place, word) in words(&without_addresses).filter(|word| is_content(word, &stop)).enumerate() {
        seen.entry(word.to_lowercase()).or_insert((0, place, word)).0 += 1;
    }
    let mut ranked: Vec<(f64, usize, &str)> = seen
        .into_values()
        .map(|(count, place, word)| {
            // Names are capitalized, and so are nouns in German. Long words are more significant than short ones.
            let large = if word.chars().next().is_some_and(char::is_uppercase) { 1.3 } else { 1.0 };
            (count as f64 * large * (word.chars().count() as f64).ln(), place, word)
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    ranked.into_iter().take(most).map(|(_, _, word)| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_what_it_is_about() {
        let text = "The invoice is wrong. Please correct the invoice and send the new invoice to accounting.";
        assert_eq!(keywords(text, Some("en"), 3)[0], "invoice");
        let text = "Die Rechnung stimmt nicht. Bitte korrigieren Sie die Rechnung für den Auftrag.";
        let found = keywords(text, Some("de"), 3);
        assert_eq!(found[0], "Rechnung");
        assert!(!found.iter().any(|word| ["die", "bitte", "sie"].contains(&word.to_lowercase().as_str())), "{found:?}");
    }

    #[test]
    fn addresses_are_no_keywords() {
        assert_eq!(keywords("write to ann@example.com or https://example.com/x", Some("en"), 5), ["write"]);
    }
}
