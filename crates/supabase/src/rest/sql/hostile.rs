//! No text of a request ever becomes part of a statement's text.
//!
//! Requests are built at random from hostile pieces, each with a marker. Two things must hold for every resulting statement: no
//! marker is in its text, and the text is the same as that of a harmless request of the same form.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;

use super::{Arguments, Compiler, Inserting, Reading, Statement, Updating, Upsert};
use crate::rest::body::Rows;
use crate::rest::catalogue::{
    Argument, Catalogue, Column, Computed, ForeignKey, Function, Gives, Relation, RelationName, Returns, Schema, Type,
};
use crate::rest::query::{Query, decode};

/// In every hostile piece, and nowhere else.
const MARK: &str = "zq7";

fn column(name: &str, kind: &str) -> Column {
    let array = format!("pg_catalog.\"_{kind}\"");
    let kind = Type { sql: format!("pg_catalog.{kind}"), array: (kind != "_text").then_some(array) };
    Column {
        name: name.to_owned(),
        sql: super::quote(name),
        number: 1,
        oid: 25,
        kind,
        default: (name == "name").then(|| "'nameless'::text".to_owned()),
    }
}

/// A table whose own names are as odd as names can be: quoting must hold for the catalogue's part too.
fn catalogue() -> Catalogue {
    let columns = || {
        vec![column("id", "int8"), column("name", "text"), column("data", "jsonb"), column("tags", "_text"), column("o\"dd -- '", "text")]
    };
    let key = |name: &str, columns: &str, relation: &str| ForeignKey {
        name: name.to_owned(),
        columns: vec![columns.to_owned()],
        schema: "public".to_owned(),
        relation: relation.to_owned(),
        referenced: vec!["id".to_owned()],
        unique: false,
        joins: true,
        repeats: false,
    };
    let computed = || {
        let rows = Gives::Rows { relation: RelationName { schema: "public".to_owned(), name: "crates".to_owned() }, many: true, set: true };
        let function = |name: &str, gives| Computed { name: name.to_owned(), sql: format!("public.{}", super::quote(name)), gives };
        vec![function("shout \"", Gives::Value(Type::text())), function("near", rows)]
    };
    let relation = |name: &str, foreign_keys| Relation {
        schema: "public".to_owned(),
        name: name.to_owned(),
        sql: format!("public.{}", super::quote(name)),
        columns: columns(),
        primary_key: vec!["id".to_owned()],
        oid: 0,
        row_type: 0,
        view: false,
        foreign_keys,
        computed: computed(),
    };
    let relations = [
        relation("things", vec![key("things_box", "name", "boxes")]),
        relation("boxes", Vec::new()),
        relation("crates", Vec::new()),
        relation("in \"between\" --", vec![key("b_things", "name", "things"), key("b_crates", "o\"dd -- '", "crates")]),
    ];
    let function = Function {
        schema: "public".to_owned(),
        name: "f".to_owned(),
        sql: "public.f".to_owned(),
        volatile: true,
        many: true,
        one_row: false,
        result: 25,
        arguments: vec![Argument {
            name: "a".to_owned(),
            sql: "\"a\"".to_owned(),
            oid: 25,
            kind: Type::text(),
            required: false,
            variadic: false,
        }],
        returns: Returns::Rows {
            columns: columns(),
            relation: Some(RelationName { schema: "public".to_owned(), name: "things".to_owned() }),
        },
    };
    let schema = Schema {
        relations: relations.map(|relation| (relation.name.clone(), Arc::new(relation))).into(),
        functions: HashMap::from([("f".to_owned(), vec![Arc::new(function)])]),
    };
    let types = HashMap::from([("text".to_owned(), "pg_catalog.text".to_owned())]);
    Catalogue { schemas: HashMap::from([("public".to_owned(), schema)]), types, read_at: Instant::now() }
}

/// Text that would do harm as part of SQL.
fn hostile() -> impl Strategy<Value = String> {
    let sharp = prop_oneof![
        Just("'".to_owned()),
        Just("\"".to_owned()),
        Just("'; drop table things; --".to_owned()),
        Just("\"; delete from boxes; --".to_owned()),
        Just("$1".to_owned()),
        Just("$$".to_owned()),
        Just("\\".to_owned()),
        Just("/*".to_owned()),
        Just(") or 1=1 --".to_owned()),
        Just("::regclass".to_owned()),
        Just("\u{0}".to_owned()),
        Just("\n".to_owned()),
        Just("'||pg_sleep(9)||'".to_owned()),
        Just("U&\"\\0061\"".to_owned()),
        "\\PC{0,12}",
    ];
    (sharp.clone(), sharp).prop_map(|(before, after)| format!("{before}{MARK}{after}"))
}

/// Where hostile text may appear, as `{}`. Where a harmless one would be accepted too, the forms are compared.
const PLACES: [&str; 50] = [
    "name=eq.{}",
    "name=not.like.{}",
    "name=ilike.*{}",
    "name=match.{}",
    "id=in.({q},{q})",
    "tags=in.({q})",
    "tags=cs.{}",
    "data=cs.{}",
    "or=(name.eq.{q},and(id.gt.{q},not.or(tags.ov.{q},id.is.null)))",
    "and=(data->{q}->>{q}.eq.{q})",
    "data->{q}=eq.{}",
    "data->{q}->0->>{q}=neq.{}",
    "select={q}:name",
    "select=*,{q}:id,data->{q}",
    "select={q}:data->{q}->>{q}",
    "select=boxes({q}:name)&boxes.name=eq.{}",
    "select=name,{q}:boxes!things_box!inner(name)",
    "order=data->{q}.desc,data->>{q}",
    "limit=3&offset=4&name=eq.{}",
    "name=like(any).{}",
    "id=eq(all).{}",
    "name=fts({}).{}",
    "or=(name.wfts(english).{q},data.fts.{q})",
    "select=name,...boxes({q}:name,data->{q})&boxes.name=eq.{}",
    "select=name,...crates(*,{q}:id)&crates.name=eq.{}",
    "select=boxes(count),crates({q}:count)&crates.name=eq.{}",
    "select=name,boxes(name)&order=data->{q}&boxes=is.null&name=eq.{}",
    "select={q}:%22shout%20%5C%22%22,near({q}:name)&near.name=eq.{}",
    "select=name,boxes(name)&order=boxes(data->{q})&or=(boxes.is.null,name.eq.{q})",
    // Names, types and operators that the client chose: refused, or looked up.
    "{q}=eq.1",
    "{}=eq.1",
    "name={}.1",
    "name=is.{}",
    "select={q}",
    "select={}",
    "select=name::{q}",
    "select={q}(name)",
    "select=crates({q}:name)&crates.name=eq.{}",
    "select=name,{q}:crates!inner(name)",
    "select=boxes!{q}(name)",
    "order={q}.desc",
    "order=name.{}",
    "columns={q}",
    "on_conflict={q}",
    "limit={}",
    "or={}",
    "select=...{q}(name)",
    "order={q}(name)",
    "name=fts({q}).x",
    "{q}=is.null",
];

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Fills the places of `template` with pieces: `{}` as they are, `{q}` in quotes.
fn fill(template: &str, pieces: &[String]) -> String {
    let mut filled = String::new();
    let mut rest = template;
    let mut pieces = pieces.iter().cycle();
    while let Some(at) = rest.find("{}").into_iter().chain(rest.find("{q}")).min() {
        filled.push_str(&rest[..at]);
        let piece = pieces.next().map_or("", String::as_str);
        let quoted = rest[at..].starts_with("{q}");
        if quoted {
            filled.push_str(&encode(&format!("\"{}\"", piece.replace('\\', "\\\\").replace('"', "\\\""))));
        } else {
            filled.push_str(&encode(piece));
        }
        rest = &rest[at + if quoted { 3 } else { 2 }..];
    }
    filled + rest
}

/// Every statement that can be compiled from a query string, a body and an argument. Refusals are left out.
fn statements(query: &str, piece: &str) -> Vec<Statement> {
    let catalogue = catalogue();
    let Ok(query) = decode(Some(query)).and_then(|parameters| Query::parse(&parameters)) else { return Vec::new() };
    let things = catalogue.relation("public", "things").expect("things");
    let function = &catalogue.functions("public", "f")[0];
    let compiler = || Compiler::new(&catalogue, &query);
    let body = |array: bool| {
        let object = serde_json::json!({"name": piece, "o\"dd -- '": piece});
        let body = if array { serde_json::json!([object]) } else { object };
        Rows::parse(body.to_string().as_bytes()).expect("a body")
    };
    let reading = Reading { count: true, most: Some(10), head_only: false, written: false };
    let named = serde_json::json!({ "a": piece }).to_string();
    let by_json = Arguments::Json { text: named, names: vec!["a".to_owned(), piece.to_owned()] };
    let by_query = Arguments::Literals(vec![("a".to_owned(), piece.to_owned()), (piece.to_owned(), piece.to_owned())]);
    let whole = Arguments::Whole(piece.to_owned());
    let merge = Inserting { upsert: Some(Upsert::Merge), missing_default: true, show: true, count: true };
    let made = [
        compiler().read(things, reading).map(Some),
        compiler().insert(things, body(true), merge),
        compiler().insert(things, body(false), Inserting::default()),
        compiler().update(things, body(false), Updating { missing_default: true, show: true, count: true }),
        compiler().delete(things, true, false).map(Some),
        compiler().call(function, by_json, reading).map(Some),
        compiler().call(function, by_query, reading).map(Some),
        compiler().call(function, whole, reading).map(Some),
    ];
    made.into_iter().filter_map(|statement| statement.ok().flatten()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn nothing_of_a_request_stands_in_sql(
        places in prop::collection::vec(prop::sample::select(PLACES.as_slice()), 1..4),
        pieces in prop::collection::vec(hostile(), 4),
    ) {
        let whole = |pieces: &[String]| places.iter().map(|place| fill(place, pieces)).collect::<Vec<_>>().join("&");
        let harmful = statements(&whole(&pieces), &pieces[0]);
        for statement in &harmful {
            prop_assert!(!statement.sql.contains(MARK), "{}", statement.sql);
        }
        // The statements of the same request with harmless words. A harmless word that is refused where a harmful one is not would
        // be a bug too.
        let words: Vec<String> = (0..4).map(|n| format!("word{n}")).collect();
        let harmless = statements(&whole(&words), &words[0]);
        if !harmful.is_empty() && harmful.len() == harmless.len() {
            for (harmful, harmless) in harmful.iter().zip(&harmless) {
                prop_assert_eq!(&harmful.sql, &harmless.sql);
            }
        }
    }

    /// Any input is parsed or refused; it never panics.
    #[test]
    fn any_text_at_all_is_understood_or_refused(query in "\\PC{0,200}", soup in "[a-z(){}.,:!*\"\\\\=&%+>'-]{0,120}") {
        for query in [query, soup] {
            for statement in statements(&query, "x") {
                prop_assert!(statement.sql.is_ascii(), "{}", statement.sql);
            }
        }
    }
}

/// The property above would hold for a parser that refuses everything: most forms must make statements.
#[test]
fn hostile_values_are_carried_and_not_refused() {
    for place in &PLACES[..29] {
        let pieces = [format!("'{MARK}\""), format!("\\{MARK}"), format!("{MARK}--"), format!("${MARK}")];
        let made = statements(&fill(place, &pieces), &pieces[0]);
        assert!(made.len() >= 4, "{place} made {} statements", made.len());
        let carried = |statement: &Statement| format!("{:?}", statement.parameters).contains(MARK);
        assert!(made.iter().all(carried), "{place}");
    }
}
