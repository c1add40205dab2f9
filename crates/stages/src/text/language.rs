//! Detects the language of a text.

use serde::Serialize;
use whatlang::{Detector, Lang};

/// The detected language, and how certain it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Language {
    /// ISO 639-1, or 639-3 if there is no shorter code. `und` if it cannot be determined.
    pub code: &'static str,
    pub name: &'static str,
    pub confidence: f64,
    /// Whether the text was long and clear enough to rely on it.
    pub reliable: bool,
}

/// Languages that have both codes. Others keep the longer one.
const CODES: &[(Lang, &str)] = &[
    (Lang::Eng, "en"),
    (Lang::Deu, "de"),
    (Lang::Fra, "fr"),
    (Lang::Spa, "es"),
    (Lang::Ita, "it"),
    (Lang::Nld, "nl"),
    (Lang::Por, "pt"),
    (Lang::Pol, "pl"),
    (Lang::Rus, "ru"),
    (Lang::Ukr, "uk"),
    (Lang::Tur, "tr"),
    (Lang::Swe, "sv"),
    (Lang::Dan, "da"),
    (Lang::Nob, "no"),
    (Lang::Fin, "fi"),
    (Lang::Ces, "cs"),
    (Lang::Hun, "hu"),
    (Lang::Ron, "ro"),
    (Lang::Ell, "el"),
    (Lang::Bul, "bg"),
    (Lang::Ara, "ar"),
    (Lang::Heb, "he"),
    (Lang::Jpn, "ja"),
    (Lang::Cmn, "zh"),
    (Lang::Kor, "ko"),
    (Lang::Hin, "hi"),
    (Lang::Vie, "vi"),
    (Lang::Ind, "id"),
    (Lang::Tha, "th"),
];

const UNKNOWN: Language = Language { code: "und", name: "undetermined", confidence: 0.0, reliable: false };

/// `expected` are the codes of the languages that people use here. Excluding others improves detection for a short text.
pub fn detect(text: &str, expected: &[String]) -> Language {
    let allowed: Vec<Lang> =
        CODES.iter().filter(|(_, code)| expected.iter().any(|e| e.eq_ignore_ascii_case(code))).map(|(lang, _)| *lang).collect();
    let detector = if allowed.is_empty() { Detector::new() } else { Detector::with_allowlist(allowed) };
    detector.detect(text).map_or(UNKNOWN, |info| Language {
        code: CODES.iter().find(|(lang, _)| *lang == info.lang()).map_or_else(|| info.lang().code(), |(_, code)| code),
        name: info.lang().eng_name(),
        confidence: (info.confidence() * 100.0).round() / 100.0,
        reliable: info.is_reliable(),
    })
}

/// The code, if it is reliable.
pub fn sure(text: &str, expected: &[String]) -> Option<&'static str> {
    Some(detect(text, expected)).filter(|language| language.reliable || language.confidence > 0.5).map(|language| language.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_and_german_are_distinguished() {
        let english = detect("Could you please send me the contract before the end of the week?", &[]);
        assert_eq!((english.code, english.reliable), ("en", true));
        let german = "Könnten Sie mir bitte den Vertrag noch vor dem Ende der Woche zuschicken? Wir warten schon seit gestern darauf.";
        assert_eq!(sure(german, &[]), Some("de"), "{:?}", detect(german, &[]));
    }

    #[test]
    fn nothing_to_read_is_no_language() {
        assert_eq!(detect("12345 !!", &[]), UNKNOWN);
        assert_eq!(sure("", &[]), None);
    }

    #[test]
    fn a_short_text_is_one_of_the_expected_languages() {
        let expected = ["de".to_owned(), "en".to_owned()];
        assert_eq!(detect("Rückruf morgen", &expected).code, "de");
    }
}
