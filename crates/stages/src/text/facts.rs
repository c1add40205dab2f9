//! The findings as readable lines: the key `facts` of a result.

use super::entities::Entities;
use super::next_steps::Step;

/// The labels of the lines, by language.
struct Words {
    email: &'static str,
    phone: &'static str,
    link: &'static str,
    amount: &'static str,
    date: &'static str,
    step: &'static str,
    until: &'static str,
}

const ENGLISH: Words =
    Words { email: "E-mail", phone: "Phone", link: "Link", amount: "Amount", date: "Date", step: "Next step", until: "due" };
const GERMAN: Words =
    Words { email: "E-Mail", phone: "Telefon", link: "Link", amount: "Betrag", date: "Datum", step: "Nächster Schritt", until: "bis" };

pub fn facts(entities: &Entities, steps: &[Step], language: Option<&str>) -> Vec<String> {
    let words = if language == Some("de") { GERMAN } else { ENGLISH };
    let mut facts = Vec::new();
    facts.extend(entities.emails.iter().map(|email| format!("{}: {email}", words.email)));
    facts.extend(entities.phones.iter().map(|phone| format!("{}: {}", words.phone, phone.number)));
    facts.extend(entities.links.iter().map(|link| format!("{}: {link}", words.link)));
    facts.extend(entities.money.iter().map(|money| format!("{}: {} {}", words.amount, money.amount, money.currency)));
    facts.extend(entities.dates.iter().map(|when| {
        let time = when.time.map(|time| time.format(" %H:%M").to_string()).unwrap_or_default();
        format!("{}: {}{time} ({})", words.date, when.date, when.text)
    }));
    facts.extend(steps.iter().map(|step| match step.due {
        Some(due) => format!("{}: {} ({} {due})", words.step, step.text, words.until),
        None => format!("{}: {}", words.step, step.text),
    }));
    facts
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::super::{entities, next_steps};
    use super::*;

    #[test]
    fn facts_are_lines_to_read() {
        let written = DateTime::parse_from_rfc3339("2026-11-16T09:00:00+00:00").expect("a time");
        let text = "Please pay 50 € by Friday.";
        let found = facts(&entities::find(text, None, written), &next_steps::find(text, written, 5), Some("en"));
        assert_eq!(found, ["Amount: 50 EUR", "Date: 2026-11-20 (Friday)", "Next step: Please pay 50 € by Friday. (due 2026-11-20)"]);
    }
}
