use super::*;

#[test]
fn several_conditions_and_quoted_values_are_distinguished() {
    let parsed = parse(r#"status=eq.raw,sales_id=in.(1,"2,3",4),name=neq."a \"b\", c""#).expect("parses");
    assert_eq!(
        parsed,
        [
            ("status".to_owned(), Operator::Eq, vec!["raw".to_owned()]),
            ("sales_id".to_owned(), Operator::In, vec!["1".to_owned(), "2,3".to_owned(), "4".to_owned()]),
            ("name".to_owned(), Operator::Neq, vec!["a \"b\", c".to_owned()]),
        ]
    );
    assert_eq!(parse("").expect("no filter"), []);
    for bad in ["status", "status=raw", "status=bogus.1", "a=in.1,2", "a=eq.\"open", "a=eq.x)"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn numbers_compare_as_numbers() {
    let condition = Condition { column: "n".into(), operator: Operator::Lt, values: vec!["10".into()], shape: Shape::Number };
    assert_eq!(condition.compare("9", "10"), Ordering::Less);
    assert_eq!(condition.compare("9.5", "10"), Ordering::Less);
    assert_eq!(condition.compare("1e2", "10"), Ordering::Greater);
}
