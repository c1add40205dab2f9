//! Amounts of money, with their currency.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::{numerals, pattern};

/// An amount as written, and its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Money {
    pub text: String,
    /// A decimal number with a point. It is text, because binary fractions cannot represent amounts exactly.
    pub amount: String,
    /// ISO 4217.
    pub currency: &'static str,
}

const SIGN: &str = r"€|\$|£|¥|₹|US\$|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|CAD|AUD|INR|CNY";
const WORD: &str = r"euros?|dollars?|bucks|pounds? sterling|pounds|pfund|franken|francs|kronor|kronen|rupees|cents?";
const NUMBER: &str = r"\d{1,3}(?:[.,'’ \u{a0}\u{202f}]\d{3})+(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?";
const TIMES: &str = r"k|thousand|tausend|tsd\.?|million(?:en)?|mio\.?|m|billion|milliarden?|mrd\.?|bn";

static BEFORE: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"(?i)(?P<unit>{SIGN})\s?(?P<number>{NUMBER})(?:\s?(?P<times>{TIMES})\b)?")));
static AFTER: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"(?i)\b(?P<number>{NUMBER})(?:\s?(?P<times>{TIMES}))?\s?(?P<unit>(?:{SIGN})|(?:{WORD})\b)")));

/// Amounts in the order of the text, with the start and end of each.
pub fn find(text: &str) -> Vec<(std::ops::Range<usize>, Money)> {
    let mut found: Vec<(std::ops::Range<usize>, Money)> = Vec::new();
    for captures in BEFORE.captures_iter(text).chain(AFTER.captures_iter(text)) {
        let Some(whole) = captures.get(0) else { continue };
        let part = |name: &str| captures.name(name).map_or("", |m| m.as_str());
        let range = whole.range();
        let inside_a_word = text[..range.start].chars().next_back().is_some_and(char::is_alphanumeric);
        if inside_a_word || found.iter().any(|(other, _)| other.start < range.end && range.start < other.end) {
            continue;
        }
        let Some(amount) = numerals::decimal(part("number")) else { continue };
        let Some(currency) = currency(part("unit")) else { continue };
        let money = Money { text: whole.as_str().trim().to_owned(), amount: shifted(&amount, zeros(part("times"))), currency };
        found.push((range, money));
    }
    found.sort_by_key(|(range, _)| range.start);
    found
}

fn currency(unit: &str) -> Option<&'static str> {
    Some(match unit.to_lowercase().as_str() {
        "€" | "eur" | "euro" | "euros" => "EUR",
        "$" | "us$" | "usd" | "dollar" | "dollars" | "bucks" => "USD",
        "£" | "gbp" | "pound" | "pounds" | "pfund" | "pound sterling" | "pounds sterling" => "GBP",
        "chf" | "franken" | "francs" => "CHF",
        "¥" | "jpy" => "JPY",
        "sek" | "kronor" => "SEK",
        "₹" | "inr" | "rupees" => "INR",
        "nok" => "NOK",
        "dkk" => "DKK",
        "pln" => "PLN",
        "czk" => "CZK",
        "cad" => "CAD",
        "aud" => "AUD",
        "cny" => "CNY",
        // For example cents: they could be of euros or of dollars.
        _ => return None,
    })
}

fn zeros(times: &str) -> usize {
    match times.to_lowercase().trim_end_matches('.') {
        "k" | "thousand" | "tausend" | "tsd" => 3,
        "m" | "mio" | "million" | "millionen" => 6,
        "bn" | "billion" | "mrd" | "milliarde" | "milliarden" => 9,
        _ => 0,
    }
}

/// `1.5` with three zeros is `1500`. It moves the point, because binary fractions cannot represent amounts exactly.
fn shifted(amount: &str, zeros: usize) -> String {
    if zeros == 0 {
        return amount.to_owned();
    }
    let (whole, part) = amount.split_once('.').unwrap_or((amount, ""));
    let mut digits = part.to_owned();
    while digits.len() < zeros {
        digits.push('0');
    }
    let (moved, rest) = digits.split_at(zeros);
    let rest = rest.trim_end_matches('0');
    if rest.is_empty() { format!("{whole}{moved}") } else { format!("{whole}{moved}.{rest}") }
}

#[cfg(test)]
mod tests;
