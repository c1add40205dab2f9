use super::*;

const NOTES: &str = "# Pump trial\n\nThe trial with Meyer AG ran for two weeks. We decided to order forty pumps. \
        The seals are broken on three of them. Please send Ann the invoice by Friday. Can we get a discount? \
        The pumps saved 12 % of the energy. Our goal is a contract before spring. Ok.";

#[test]
fn sentences_are_classified() {
    let found = find(NOTES, Some("en"), 24);
    let kinds: Vec<(&str, &str)> = found.iter().map(|block| (block.semantic_type, block.content.split(' ').next().unwrap_or(""))).collect();
    assert_eq!(
        kinds,
        [
            ("insight", "The"),
            ("decision", "We"),
            ("problem", "The"),
            ("action", "Please"),
            ("question", "Can"),
            ("metric", "The"),
            ("goal", "Our")
        ]
    );
    assert!(found.iter().all(|block| (0.0..=1.0).contains(&block.confidence)), "{found:?}");
}

#[test]
fn the_surest_are_kept_and_titles_differ() {
    assert_eq!(find(NOTES, Some("en"), 2).iter().map(|block| block.semantic_type).collect::<Vec<_>>(), ["decision", "question"]);
    let twice = "Can we get all the pumps to Oslo by Monday? Can we get all the pumps to Oslo by Friday?";
    let titles: Vec<String> = find(twice, Some("en"), 9).into_iter().map(|block| block.title).collect();
    assert_eq!(titles, ["Can we get all the pumps to Oslo …", "Can we get all the pumps to Oslo … (2)"]);
}

#[test]
fn nothing_is_found_in_nothing() {
    assert_eq!(find("", None, 24), []);
    assert_eq!(find("Ok.\n\n# Only a heading", None, 24), []);
}
