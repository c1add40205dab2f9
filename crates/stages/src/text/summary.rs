//! An extractive summary: the sentences that cover most of the text's content, in their original words and order.

use std::collections::{HashMap, HashSet};

use super::words::{is_content, sentences, stop_words, words};

/// The length of the summary.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    pub sentences: usize,
    pub words: usize,
}

impl Default for Length {
    fn default() -> Self {
        Self { sentences: 3, words: 60 }
    }
}

pub fn summarise(text: &str, language: Option<&str>, length: Length) -> String {
    let all = sentences(text);
    let stop = stop_words(language);
    let content = |sentence: &str| words(sentence).filter(|w| is_content(w, &stop)).map(str::to_lowercase).collect::<Vec<_>>();
    let mut frequency: HashMap<String, f64> = HashMap::new();
    for word in all.iter().flat_map(|sentence| content(sentence)) {
        *frequency.entry(word).or_default() += 1.0;
    }
    let mut ranked: Vec<(f64, usize)> = all
        .iter()
        .enumerate()
        .map(|(place, sentence)| {
            let words: HashSet<String> = content(sentence).into_iter().collect();
            let weight: f64 = words.iter().filter_map(|word| frequency.get(word)).sum();
            // Scored per word, so that long sentences do not win by length alone. The first sentences usually state the topic.
            let score = weight / (words.len() as f64 + 3.0) * if place == 0 { 1.25 } else { 1.0 };
            (score, place)
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut chosen: Vec<usize> = Vec::new();
    let mut used = 0;
    for (_, place) in ranked {
        let size = words(all[place]).count();
        if chosen.len() < length.sentences && (chosen.is_empty() || used + size <= length.words) {
            chosen.push(place);
            used += size;
        }
    }
    chosen.sort_unstable();
    shortened(&chosen.into_iter().map(|place| all[place]).collect::<Vec<_>>().join(" "), length.words)
}

/// Transcripts have no full stops, so the text is cut at the word limit.
fn shortened(text: &str, most: usize) -> String {
    let all: Vec<&str> = text.split_whitespace().collect();
    if all.len() <= most { all.join(" ") } else { format!("{} …", all[..most].join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "Hello Ann,\n\nthe delivery of the pumps is late again. The weather was nice on Sunday. \
        Our customer needs the pumps by Friday or the delivery is cancelled. I had soup for lunch. \
        Please tell us when the delivery of the pumps arrives.\n\nBest regards\nBob";

    #[test]
    fn the_sentences_that_carry_it_are_chosen_in_their_order() {
        let summary = summarise(MAIL, Some("en"), Length::default());
        assert!(summary.starts_with("the delivery of the pumps is late again."), "{summary}");
        assert!(summary.contains("by Friday") && !summary.contains("soup") && !summary.contains("weather"), "{summary}");
    }

    #[test]
    fn speech_without_full_stops_is_cut() {
        let speech = "please call me back about the order ".repeat(30);
        let summary = summarise(&speech, Some("en"), Length { sentences: 3, words: 10 });
        assert_eq!(summary.split_whitespace().count(), 11);
        assert!(summary.ends_with('…'));
    }

    #[test]
    fn a_short_text_is_its_own_summary() {
        assert_eq!(summarise("Rufen Sie mich bitte morgen an.", Some("de"), Length::default()), "Rufen Sie mich bitte morgen an.");
        assert_eq!(summarise("", None, Length::default()), "");
    }
}
