use super::*;

/// What a template prints, given a shape with one field that is set and one that is left out.
fn print(template: &str) -> std::result::Result<String, minijinja::Error> {
    let fields = std::collections::BTreeMap::from([("key", Some("id")), ("owner", None)]);
    let mut env = environment(&fields).expect("fields are names");
    env.add_template_owned("a", template.to_owned())?;
    env.get_template("a")?.render(())
}

#[test]
fn a_misspelt_name_does_not_render() {
    assert_eq!(print("{{ key }}{% if owner %}{{ owner.column }}{% endif %}").unwrap(), "id");
    assert!(print("{{ kye }}").is_err());
    assert!(print("{% if kye %}a{% endif %}").is_err());
    assert!(print("{{ key.colunm }}").is_err());
}

#[test]
fn a_line_break_inside_a_name_is_not_indented() {
    assert_eq!(indent("a -- it's\nb \"x\ny\" 'z\n'\nc", 2), "a -- it's\n  b \"x\ny\" 'z\n'\n  c");
}

#[test]
fn what_a_declaration_leaves_out_is_not_printed() {
    assert!(print("{{ owner }}").is_err());
    assert!(print("{{ owner.column }}").is_err());
}
