use crate::support::Gleaner;

const FIRST: &str = "00000000-0000-0000-0000-000000000001";
const SECOND: &str = "00000000-0000-0000-0000-000000000002";

/// Two messages of one stranger, and one that might be of either of two people.
fn inbox() -> Gleaner {
    let gleaner = Gleaner::migrated();
    gleaner.sql(&format!(
        "insert into contacts (id, first_name, last_name, email) values (1, 'Ann', 'Lee', 'two@x.com'), (2, 'Bob', null, 'two@x.com');
         insert into activities (id, type, raw_data, created_at) values
             ('{FIRST}', 'email', '{{\"sender\": \"new@x.com\", \"subject\": \"He\\u001b[2Jllo\"}}', now() - interval '2 hours'),
             ('{SECOND}', 'email', '{{\"sender\": \"new@x.com\"}}', now() - interval '3 hours');
         insert into activities (type, raw_data) values ('email', '{{\"sender\": \"two@x.com\"}}')"
    ));
    gleaner
}

#[test]
fn unmatched_activities_are_listed_with_those_who_might_be_meant() {
    let gleaner = inbox();
    let table = gleaner.ok(&["contacts", "unmatched"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].contains("two@x.com") && lines[1].contains("1 Ann Lee, 2 Bob"), "{table}");
    assert!(lines[2].starts_with(FIRST) && lines[2].contains("new@x.com") && lines[2].contains("2 h ago"), "{table}");
    assert!(!table.contains('\u{1b}'), "a subject does not command the terminal: {table}");

    let page = gleaner.json(&["contacts", "unmatched", "--limit", "2"]);
    let rest = gleaner.json(&["contacts", "unmatched", "--after", page["next"].as_str().expect("more")]);
    assert_eq!(rest["items"][0]["id"], SECOND);
    assert_eq!(gleaner.run(&["contacts", "unmatched", "--after", "yesterday"]).code, 2);
}

#[test]
fn a_sender_is_linked_with_all_that_came_and_taken_apart_again() {
    let gleaner = inbox();
    let linked = gleaner.json(&["contacts", "link", FIRST, "1", "--backfill", "--remember"]);
    assert_eq!(linked.as_array().map(Vec::len), Some(2), "{linked}");
    assert!(gleaner.ok(&["contacts", "link", FIRST, "1"]).contains("nothing to change"));
    assert_eq!(gleaner.json(&["contacts", "unlink", SECOND])[0]["outcome"], "done");
    assert_eq!(gleaner.json(&["contacts", "unmatched"])["items"].as_array().map(Vec::len), Some(2));

    let gone = gleaner.run(&["contacts", "unlink", "00000000-0000-0000-0000-000000000009"]);
    assert_eq!(gone.code, 1);
    assert!(gone.out.contains("no such activity"), "{gone:?}");
    let missing = gleaner.run(&["contacts", "link", FIRST, "99"]);
    assert!(missing.code == 1 && missing.err.contains("there is no contact 99"), "{missing:?}");
}
