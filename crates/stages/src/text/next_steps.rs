//! Finds sentences with a promise or a request, and their due dates.

use std::sync::LazyLock;

use chrono::{DateTime, FixedOffset, NaiveDate};
use regex::Regex;
use serde::Serialize;

use super::words::sentences;
use super::{dates, pattern};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub text: String,
    /// The due day, if the sentence names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<NaiveDate>,
}

/// Requests, promises and obligations, in English and German.
static CUES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?ix)
        \b(?: please | could\ you | can\ you | would\ you | let\ me\ know | get\ back\ to | call\ (?:me|us|him|her|them|you)\ back
          | follow(?:-|\s)?up | need(?:s)?\ to | have\ to | must | remind | schedule | deadline | next\ steps? | action\ items?
          | (?:i|we)(?:'ll|’ll|\ will|\ shall|\ am\ going\ to|\ are\ going\ to|\ plan\ to) | let(?:'|’)?s | looking\ forward\ to\ (?:your|hearing)
          | bitte | könn(?:en|ten)\ sie | kannst\ du | könntest\ du | würden\ sie | melde[nt]?\ (?:sie\ )?(?:sich|mich|uns|dich) | rückruf | zurückrufen
          | ruf(?:en|e)?\ (?:sie\ )?(?:mich|uns|dich)\ | muss | müssen | sollte[n]? | soll | werde(?:n)?\ (?:ich|wir) | (?:ich|wir)\ werden? | (?:ich|wir)\ schicken?
          | frist | termin\ (?:vereinbaren|am|um) | nächste\ schritte | erinner(?:n|e|ung) )\b",
    )
});

/// Thanks for something already done are not a request.
static COURTESY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^(?:yes|no|ja|nein)?,?\s*(?:bitte|please)[.!]?$|^bitte sehr\b|^(?:thank|thanks|danke|vielen dank)\b"));

/// Whether a sentence asks for something or promises it.
pub(super) fn asks(sentence: &str) -> bool {
    CUES.is_match(sentence) && !COURTESY.is_match(sentence)
}

pub fn find(text: &str, written: DateTime<FixedOffset>, most: usize) -> Vec<Step> {
    let asked = sentences(text).into_iter().filter(|sentence| asks(sentence));
    let mut steps: Vec<Step> = Vec::new();
    for sentence in asked.take(most) {
        let due = dates::find(sentence, written).into_iter().map(|(_, when)| when.date).find(|date| *date >= written.date_naive());
        let step = Step { text: sentence.to_owned(), due };
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Vec<(String, Option<String>)> {
        let written = DateTime::parse_from_rfc3339("2026-11-16T09:00:00+00:00").expect("a time");
        super::find(text, written, 10).into_iter().map(|step| (step.text, step.due.map(|due| due.to_string()))).collect()
    }

    #[test]
    fn requests_and_promises_are_found_with_their_day() {
        let found = find("The pump is broken. Please call me back tomorrow. We'll send a new one by Friday. It was cold.");
        let due = |text: &str, day: &str| (text.to_owned(), Some(day.to_owned()));
        assert_eq!(found, [due("Please call me back tomorrow.", "2026-11-17"), due("We'll send a new one by Friday.", "2026-11-20")]);
    }

    #[test]
    fn in_german_too() {
        let found =
            find("Die Pumpe ist kaputt. Bitte rufen Sie mich morgen zurück. Wir werden das Angebot bis Freitag schicken. Danke für alles.");
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].1.as_deref(), Some("2026-11-17"));
        assert_eq!(found[1].1.as_deref(), Some("2026-11-20"));
    }

    #[test]
    fn thanks_ask_for_nothing() {
        assert_eq!(find("Thank you for the call. Danke, das müssen wir feiern. It rained."), []);
    }
}
