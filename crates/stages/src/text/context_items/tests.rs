use super::*;

fn labels(text: &str, language: &str) -> Vec<(&'static str, String)> {
    let written = DateTime::parse_from_rfc3339("2026-11-16T09:00:00+00:00").expect("a time");
    find(text, Some(language), None, written, 40).into_iter().map(|item| (item.kind, item.label)).collect()
}

#[test]
fn names_addresses_themes_and_things_to_do_are_found() {
    let found = labels(
        "# Pump trial\n\nAda Lovelace of Meyer AG tested the solar pumps. The solar pumps ran well, said Ada Lovelace. \
             Write to ada@example.com or see https://example.com/trial. Please call Bob by Friday.",
        "en",
    );
    let has = |kind: &'static str, label: &str| assert!(found.contains(&(kind, label.to_owned())), "{label} in {found:?}");
    has("entity", "Ada Lovelace");
    has("entity", "Meyer AG");
    has("entity", "Bob");
    has("entity", "ada@example.com");
    has("source_ref", "https://example.com/trial");
    has("topic", "Pump trial");
    has("topic", "solar pumps");
    has("task", "Please call Bob by Friday.");
    assert!(!found.iter().any(|(_, label)| ["The", "Friday", "Write", "solar", "pumps"].contains(&label.as_str())), "{found:?}");
}

#[test]
fn german_nouns_are_no_names() {
    let found = labels("Der Vertrag mit Meyer AG muss zur Prüfung. Die Rechnung geht an Anna Schmidt.", "de");
    let names: Vec<&str> = found.iter().filter(|(kind, _)| *kind == "entity").map(|(_, label)| label.as_str()).collect();
    assert_eq!(names, ["Meyer AG", "Anna Schmidt"]);
}
