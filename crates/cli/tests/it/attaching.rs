use crate::support::Gleaner;

const ORDERS: &str = r#"
table  = "public.orders"
status = { column = "state", ready = "new", running = "packing", done = "sent", failed = "failed" }
"#;

fn with_orders() -> Gleaner {
    let gleaner = Gleaner::migrated();
    gleaner.sql("create table public.orders (id bigint primary key, state text not null default 'new', note text, weight int)");
    gleaner
}

#[test]
fn attach_reports_every_mistake_at_once() {
    let gleaner = with_orders();
    let file = gleaner.file(
        "orders.toml",
        r#"
        table  = "public.orders"
        status = { column = "stat", ready = "new", running = "packing", done = "sent", failed = "failed" }
        kind   = "weight"
        result = "outcome"
        hold   = "soon"
        "#,
    );
    let refused = gleaner.run(&["attach", &file]);
    assert_eq!(refused.code, 1);
    for (mistake, instead) in [("\"stat\"", "\"state\""), ("weight", "text or enum"), ("outcome", "orders"), ("\"soon\"", "5 minutes")] {
        assert!(refused.err.contains(mistake) && refused.err.contains(instead), "{mistake}: {}", refused.err);
    }
    assert_eq!(gleaner.sql("select count(*) from pg_attribute where attrelid = 'orders'::regclass and attname = 'lease'"), "0");

    let unreadable = gleaner.file("odd.toml", "table = \"public.orders\"\nstatus = \n");
    assert!(gleaner.run(&["attach", &unreadable]).err.contains("odd.toml"));
    let odd = gleaner.run(&["attach", &gleaner.file("odd.toml", "table = \"public.orders\"\nstatus = 5\n")]).err;
    assert!(odd.contains("declaration of odd") && odd.contains("line 2: status is no table of keys"), "{odd}");
    assert!(gleaner.run(&["attach", "nowhere.toml"]).err.contains("nowhere.toml"));
}

#[test]
fn attach_on_a_bare_database_says_to_migrate_first() {
    let gleaner = Gleaner::empty();
    gleaner.sql("create table public.orders (id bigint primary key, state text)");
    let file = gleaner.file("orders.toml", ORDERS);
    let refused = gleaner.run(&["attach", &file]);
    assert!(refused.code == 1 && refused.err.contains("`gleaner migrate`"), "{refused:?}");
}

#[test]
fn a_table_of_ones_own_is_attached_worked_and_detached() {
    let gleaner = with_orders();
    let file = gleaner.file("orders.toml", ORDERS);
    let columns = "select string_agg(column_name || data_type, ',' order by ordinal_position) from information_schema.columns where table_name = 'orders'";
    let before = gleaner.sql(columns);

    let rehearsal = gleaner.ok(&["attach", &file, "--dry-run"]);
    assert!(rehearsal.contains("function gleaner.claim_orders"), "{rehearsal}");
    assert_eq!(gleaner.sql(columns), before, "a dry run changes nothing");

    assert!(gleaner.ok(&["attach", &file]).contains("attached"));
    assert_eq!(gleaner.ok(&["sql", "orders"]).trim(), gleaner.sql("select rendered from gleaner.queue where name = 'orders'").trim());
    gleaner.sql("insert into orders (id, note) values (1, 'by hand')");
    gleaner.ok(&["enqueue", "orders", "id=2", "note=by act", "weight=12"]);
    gleaner.ok(&["enqueue", "orders", r#"[{"id": 3}, {"id": 4, "weight": 5}]"#]);
    // Without a declared payload the command gets the whole row.
    gleaner.ok(&["work", "orders", "--until-empty", "--exec", r#"grep -q '"state":"packing"'"#]);
    assert_eq!(gleaner.sql("select string_agg(state, ',') from orders"), "sent,sent,sent,sent");
    assert!(gleaner.ok(&["detach", "orders"]).contains("as it was"));
    assert_eq!(gleaner.sql(columns), before);
    assert!(gleaner.run(&["sql", "orders"]).err.contains("attached are: activities, dumps"));
}

#[test]
fn every_mistake_in_the_keys_of_a_declaration_is_reported_with_its_line() {
    let gleaner = Gleaner::migrated();
    let file = gleaner.file("orders.toml", "table = 'public.orders'\nstatus = 'state'\nknd = 'kind'\n");
    let ran = gleaner.run(&["attach", &file]);
    assert_eq!(ran.code, 1);
    for part in [
        "2 mistakes in the declaration of orders",
        "line 2: status = \"state\" is a text: write status = { column = \"state\", ready = ",
        "line 3: knd: there is no such key: did you mean \"kind\"?",
    ] {
        assert!(ran.err.contains(part), "{part:?} is not in: {}", ran.err);
    }
}
