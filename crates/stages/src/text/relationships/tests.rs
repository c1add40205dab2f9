use super::*;

#[test]
fn a_block_mentions_what_it_names_and_entities_of_a_sentence_are_linked() {
    let text = "Ada tested the pumps in Oslo. Ada likes Oslo. Adam does not.";
    let blocks = [Block { title: "Test".into(), content: "Ada tested the pumps in Oslo.".into() }];
    let item = |kind: &str, label: &str| Item { kind: kind.into(), label: label.into() };
    let items = [item("entity", "Ada"), item("entity", "Oslo"), item("topic", "pumps"), item("entity", "Adam")];
    let found = find(text, &blocks, &items, 100);
    let found: Vec<String> =
        found.iter().map(|edge| format!("{} {} {} {}", edge.from, edge.relationship_type, edge.to, edge.strength)).collect();
    assert_eq!(
        found,
        [
            "Test mentions Ada 0.6",
            "Test mentions Oslo 0.6",
            "Test about pumps 0.6",
            "Ada links_to Oslo 0.5",
            "Ada links_to pumps 0.3",
            "Oslo links_to pumps 0.3"
        ]
    );
    assert_eq!(find(text, &blocks, &items, 2).len(), 2);
}
