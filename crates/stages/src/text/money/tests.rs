use super::*;

#[test]
fn amounts_are_read_in_either_countrys_writing() {
    for (text, amount, currency) in [
        ("It costs $1,234.56 net", "1234.56", "USD"),
        ("Das macht 1.234,56 € brutto", "1234.56", "EUR"),
        ("EUR 49", "49", "EUR"),
        ("about 2.5 million dollars", "2500000", "USD"),
        ("Budget: 1,5 Mio. Euro", "1500000", "EUR"),
        ("£12k", "12000", "GBP"),
        ("20 Franken", "20", "CHF"),
    ] {
        let found = find(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!((found[0].1.amount.as_str(), found[0].1.currency), (amount, currency), "{text}");
    }
}

#[test]
fn numbers_alone_are_no_money() {
    for text in ["call 555 0100", "in 3 weeks", "a 5 minute walk", "ROUTE66", "20 cents"] {
        assert_eq!(find(text), [], "{text}");
    }
}
