//! How insights and entities of a text relate: an insight mentions an entity, and entities stand in one sentence.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::markdown::{Piece, pieces};

/// One connection. Ends are named: a block by its title, an entity by its label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relationship {
    pub from_type: &'static str,
    pub from: String,
    pub to_type: &'static str,
    pub to: String,
    pub relationship_type: &'static str,
    pub strength: f64,
}

/// What is read of a block of an earlier stage.
#[derive(Debug, Clone, Deserialize)]
pub struct Block {
    pub title: String,
    #[serde(default)]
    pub content: String,
}

/// What is read of an entity of an earlier stage.
#[derive(Debug, Clone, Deserialize)]
pub struct Item {
    pub kind: String,
    pub label: String,
}

/// The connections: of blocks first, then those between entities, the strongest first. `most` bounds their number.
pub fn find(text: &str, blocks: &[Block], items: &[Item], most: usize) -> Vec<Relationship> {
    let lower: Vec<String> = items.iter().map(|item| item.label.to_lowercase()).collect();
    let mut found = Vec::new();
    for block in blocks {
        let content = format!("{}\n{}", block.title, block.content).to_lowercase();
        for (item, label) in items.iter().zip(&lower).filter(|(_, label)| names(&content, label)) {
            let relationship_type =
                if item.kind == "topic" || content.ends_with(label.as_str()) && item.kind == "task" { "about" } else { "mentions" };
            found.push(Relationship {
                from_type: "block",
                from: block.title.clone(),
                to_type: "context_item",
                to: item.label.clone(),
                relationship_type,
                strength: 0.6,
            });
        }
    }
    found.extend(together(text, items, &lower));
    found.truncate(most);
    found
}

/// Entities that stand in one sentence.
fn together(text: &str, items: &[Item], lower: &[String]) -> Vec<Relationship> {
    let mut counts: HashMap<(usize, usize), u32> = HashMap::new();
    for piece in pieces(text) {
        let (Piece::Sentence(sentence) | Piece::Heading(sentence)) = piece;
        let sentence = sentence.to_lowercase();
        let here: Vec<usize> = (0..items.len()).filter(|n| items[*n].kind != "task" && names(&sentence, &lower[*n])).collect();
        for (place, first) in here.iter().enumerate() {
            for second in &here[place + 1..] {
                // "solar pumps" is not related to the "pumps" in it.
                if !lower[*first].contains(&lower[*second]) && !lower[*second].contains(&lower[*first]) {
                    *counts.entry((*first, *second)).or_default() += 1;
                }
            }
        }
    }
    let mut pairs: Vec<((usize, usize), u32)> = counts.into_iter().collect();
    pairs.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let pair = |((first, second), count): ((usize, usize), u32)| Relationship {
        from_type: "context_item",
        from: items[first].label.clone(),
        to_type: "context_item",
        to: items[second].label.clone(),
        relationship_type: "links_to",
        strength: f64::from((count * 2 + 1).min(10)) / 10.0,
    };
    pairs.into_iter().map(pair).collect()
}

/// Whether a text contains a label as whole words. Both are in lower case.
fn names(text: &str, label: &str) -> bool {
    if label.is_empty() {
        return false;
    }
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(label).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + label.len()..].chars().next());
        let (first, last) = (label.chars().next(), label.chars().next_back());
        let goes_on = is_word(before) && is_word(first) || is_word(after) && is_word(last);
        !goes_on
    })
}

#[cfg(test)]
mod tests;
