//! Insights of a text: questions, decisions, things to do, goals, solutions, problems, figures, and what the text is about.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::markdown::{Piece, pieces};
use super::words::{is_content, stop_words, words};
use super::{money, next_steps, pattern};

/// One insight, as it is stored for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    pub title: String,
    pub content: String,
    pub semantic_type: &'static str,
    /// From 0 to 1. A cue word says little, a question mark much.
    pub confidence: f64,
}

/// Shorter sentences say nothing by themselves.
const FEWEST_WORDS: usize = 4;
/// Words of a title.
const TITLE: usize = 8;

static DECISION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\b(?:decided|decision|agreed|we chose|approved|beschlossen|beschluss|entschieden|entscheidung|vereinbart|genehmigt)\b")
});
static GOAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\b(?:goals?|aims?|objectives?|targets?|wants? to|would like to|plans? to|hope to|ziele?|möchten?|wollen|streben)\b")
});
static SOLUTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:solutions?|solve[sd]?|fix(?:es|ed)?|workarounds?|resolved?|remedy|lösung(?:en)?|gelöst|behoben|abhilfe|löst|solving)\b",
    )
});
static PROBLEM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?ix)\b(?: problems? | issues? | broken | fail(?:s|ed|ure|ures)? | errors? | bugs? | risks? | blocked | delay(?:s|ed)? | late
          | missing | cannot | can't | can’t | complain(?:s|ed|t|ts)? | unfortunately | unclear
          | probleme? | fehler | kaputt | defekt | risik(?:o|en) | verspätet | verzögert | fehlt | fehlen | leider | beschwer(?:t|de|den) | unklar )\b",
    )
});
static FIGURE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d(?:[.,]\d+)?\s?(?:%|percent\b|prozent\b)"));

/// The insights, in the order of the text. `most` bounds their number; the surest are kept.
pub fn find(text: &str, language: Option<&str>, most: usize) -> Vec<Block> {
    let sentences: Vec<String> = pieces(text)
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Sentence(sentence) => Some(sentence),
            Piece::Heading(_) => None,
        })
        .filter(|sentence| words(sentence).count() >= FEWEST_WORDS)
        .collect();
    let weights = weights(&sentences, language);
    let greatest = weights.iter().copied().fold(f64::EPSILON, f64::max);
    let mut seen = HashSet::new();
    let mut found: Vec<(usize, Block)> = Vec::new();
    let mut plain: Vec<(usize, f64)> = Vec::new();
    for (place, sentence) in sentences.iter().enumerate() {
        if !seen.insert(sentence.to_lowercase()) {
            continue;
        }
        match kind(sentence) {
            Some((semantic_type, confidence)) => found.push((place, block(sentence, semantic_type, confidence))),
            None => plain.push((place, weights[place] / greatest)),
        }
    }
    // Of sentences without a cue, those that say most of what the text is about.
    plain.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let share = plain.len().div_ceil(3).min(8);
    let insights = plain.into_iter().take(share);
    found.extend(insights.map(|(place, weight)| (place, block(&sentences[place], "insight", (30.0 + 30.0 * weight).round() / 100.0))));
    found.sort_by(|a, b| b.1.confidence.total_cmp(&a.1.confidence).then(a.0.cmp(&b.0)));
    found.truncate(most);
    found.sort_by_key(|(place, _)| *place);
    with_own_titles(found.into_iter().map(|(_, block)| block).collect())
}

fn kind(sentence: &str) -> Option<(&'static str, f64)> {
    let has_figure = || FIGURE.is_match(&sentence.to_lowercase()) || !money::find(sentence).is_empty();
    if sentence.trim_end_matches(['"', '\'', ')', '”', '“', '»']).ends_with('?') {
        Some(("question", 0.9))
    } else if DECISION.is_match(sentence) {
        Some(("decision", 0.8))
    } else if next_steps::asks(sentence) {
        Some(("action", 0.7))
    } else if GOAL.is_match(sentence) {
        Some(("goal", 0.6))
    } else if SOLUTION.is_match(sentence) {
        Some(("solution", 0.6))
    } else if PROBLEM.is_match(sentence) {
        Some(("problem", 0.6))
    } else if has_figure() {
        Some(("metric", 0.7))
    } else {
        None
    }
}

fn block(sentence: &str, semantic_type: &'static str, confidence: f64) -> Block {
    let mut title: String = sentence.split_whitespace().take(TITLE).collect::<Vec<_>>().join(" ");
    if title.len() < sentence.len() {
        title = format!("{} …", title.trim_end_matches([',', ';', ':', '–', '-', ' ']));
    }
    Block { title: title.chars().take(120).collect(), content: sentence.to_owned(), semantic_type, confidence }
}

/// Connections name a block by its title, so no two have the same one.
fn with_own_titles(mut blocks: Vec<Block>) -> Vec<Block> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    for block in &mut blocks {
        let times = taken.entry(block.title.to_lowercase()).or_insert(0);
        *times += 1;
        if *times > 1 {
            block.title = format!("{} ({times})", block.title);
        }
    }
    blocks
}

/// How much of the text's content each sentence carries.
fn weights(sentences: &[String], language: Option<&str>) -> Vec<f64> {
    let stop = stop_words(language);
    let content = |sentence: &str| words(sentence).filter(|word| is_content(word, &stop)).map(str::to_lowercase).collect::<HashSet<_>>();
    let all: Vec<HashSet<String>> = sentences.iter().map(|sentence| content(sentence)).collect();
    let mut frequency: HashMap<&str, f64> = HashMap::new();
    for word in all.iter().flatten() {
        *frequency.entry(word).or_default() += 1.0;
    }
    all.iter().map(|words| words.iter().filter_map(|word| frequency.get(word.as_str())).sum::<f64>() / (words.len() as f64 + 3.0)).collect()
}

#[cfg(test)]
mod tests;
