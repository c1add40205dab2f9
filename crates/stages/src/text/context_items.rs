//! What a text is about: names, addresses, links, themes, things to do.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use chrono::{DateTime, FixedOffset};
use regex::Regex;
use serde::Serialize;
use serde_json::{Value, json};

use super::markdown::{Piece, pieces};
use super::words::{is_content, stop_words, words};
use super::{entities, next_steps, pattern};

/// One entity or theme. `kind` is entity, source_ref, topic or task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextItem {
    pub kind: &'static str,
    pub label: String,
    pub metadata: Value,
}

/// A name: capitalized words in a row.
static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\p{Lu}[\p{L}\p{N}&'’.\-]*(?:[ \u{a0}]\p{Lu}[\p{L}\p{N}&'’\-]*){0,4}"));

/// Capitalized, and still no names.
const NO_NAMES: &[&str] = &[
    "i",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "montag",
    "dienstag",
    "mittwoch",
    "donnerstag",
    "freitag",
    "samstag",
    "sonntag",
    "januar",
    "februar",
    "märz",
    "mai",
    "juni",
    "juli",
    "oktober",
    "dezember",
    "i'm",
    "i've",
    "i'll",
    "i'd",
];

/// What is found, most often named first within a kind. `most` bounds their number.
pub fn find(text: &str, language: Option<&str>, region: Option<&str>, written: DateTime<FixedOffset>, most: usize) -> Vec<ContextItem> {
    let pieces = pieces(text);
    let sentences: Vec<&str> =
        pieces.iter().filter_map(|piece| if let Piece::Sentence(sentence) = piece { Some(sentence.as_str()) } else { None }).collect();
    let mut found = Vec::new();
    let mut taken: HashSet<String> = HashSet::new();
    let mut add = |kind: &'static str, label: &str, metadata: Value| {
        let label: String = label.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        if !label.is_empty() && taken.insert(label.to_lowercase()) {
            found.push(ContextItem { kind, label, metadata });
        }
    };
    for (name, count) in names(&sentences, language) {
        add("entity", &name, json!({"type": "name", "count": count}));
    }
    let formal = entities::find(text, region, written);
    for email in &formal.emails {
        add("entity", email, json!({"type": "email"}));
    }
    for phone in &formal.phones {
        add("entity", &phone.number, json!({"type": "phone", "written": phone.text}));
    }
    for link in &formal.links {
        add("source_ref", link, json!({"type": "link"}));
    }
    for piece in &pieces {
        if let Piece::Heading(heading) = piece {
            add("topic", heading, json!({"from": "heading"}));
        }
    }
    for (phrase, count) in phrases(&sentences, language) {
        add("topic", &phrase, json!({"from": "words", "count": count}));
    }
    for step in sentences.iter().flat_map(|sentence| next_steps::find(sentence, written, 1)) {
        add("task", &step.text, step.due.map_or_else(|| json!({}), |due| json!({"due": due})));
    }
    found.truncate(most);
    found
}

/// Capitalized words inside a sentence. At its start a word is capitalized in any case, and in German so is every noun: there
/// only two in a row, or an abbreviation, count.
fn names(sentences: &[&str], language: Option<&str>) -> Vec<(String, usize)> {
    let stop = stop_words(language);
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    for sentence in sentences {
        for run in NAME.find_iter(sentence) {
            // An address contains capitals, too.
            let around = sentence[..run.start()].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "@/._-".contains(c))
                || sentence[run.end()..].starts_with(['@', '/']);
            let mut parts: Vec<&str> =
                run.as_str().split([' ', '\u{a0}']).map(|word| word.trim_end_matches(['.', '\'', '’', '-'])).collect();
            let common = |word: &str| NO_NAMES.contains(&word.to_lowercase().as_str()) || stop.contains(word.to_lowercase().as_str());
            while parts.first().is_some_and(|word| common(word)) {
                parts.remove(0);
            }
            while parts.last().is_some_and(|word| common(word)) {
                parts.pop();
            }
            let starts = run.start() == 0 && parts.first().is_some_and(|first| sentence.starts_with(first));
            let label = parts.join(" ");
            let short = |word: &str| word.chars().filter(|c| c.is_uppercase()).count() >= 2;
            let is_name = match parts[..] {
                [] => false,
                [one] => (short(one) || language != Some("de") && !starts) && one.chars().count() >= 2,
                _ => true,
            };
            if is_name && !around {
                let next = counts.len();
                counts.entry(label).or_insert((0, next)).0 += 1;
            }
        }
    }
    ranked(counts)
}

/// Content words, and pairs of them, that come back.
fn phrases(sentences: &[&str], language: Option<&str>) -> Vec<(String, usize)> {
    let stop = stop_words(language);
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    let mut count = |phrase: String| {
        let next = counts.len();
        counts.entry(phrase).or_insert((0, next)).0 += 1;
    };
    for sentence in sentences {
        let mut before: Option<String> = None;
        for word in words(sentence) {
            let content =
                is_content(word, &stop) && !word.chars().any(|c| c.is_numeric()) && !NO_NAMES.contains(&word.to_lowercase().as_str());
            let word = content.then(|| word.to_lowercase());
            if let (Some(before), Some(word)) = (&before, &word) {
                count(format!("{before} {word}"));
            }
            if let Some(word) = &word {
                count(word.clone());
            }
            before = word;
        }
    }
    let pairs: HashSet<String> =
        counts.iter().filter(|(phrase, (count, _))| *count > 1 && phrase.contains(' ')).map(|(phrase, _)| phrase.clone()).collect();
    // A word that comes back only as part of a pair says no more than the pair.
    let alone = |phrase: &str, count: usize| {
        phrase.contains(' ') || !pairs.iter().any(|pair| pair.split(' ').any(|word| word == phrase) && counts[pair].0 >= count)
    };
    let kept: HashMap<String, (usize, usize)> = counts
        .iter()
        .filter(|(phrase, (count, _))| *count > 1 && alone(phrase, *count))
        .map(|(phrase, seen)| (phrase.clone(), *seen))
        .collect();
    let mut ranked = ranked(kept);
    ranked.truncate(6);
    ranked
}

fn ranked(counts: HashMap<String, (usize, usize)>) -> Vec<(String, usize)> {
    let mut all: Vec<(String, (usize, usize))> = counts.into_iter().collect();
    all.sort_by(|a, b| b.1.0.cmp(&a.1.0).then(a.1.1.cmp(&b.1.1)));
    all.into_iter().map(|(label, (count, _))| (label, count)).collect()
}

#[cfg(test)]
mod tests;
