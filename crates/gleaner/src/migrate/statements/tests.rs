use super::*;

#[test]
fn statements_end_at_semicolons_outside_of_texts_comments_and_bodies() {
    let text = "-- a; b\ncreate table public.t (a text default ';');\ndo $x$ begin null; end $x$;\n/* c; */ drop index public.i;\n-- end\n";
    let acts: Vec<Act<'_>> = split(text).into_iter().map(act).collect();
    assert_eq!(acts, [Act::CreateTable("public.t"), Act::Other, Act::DropIndex("public.i")]);
}

#[test]
fn a_quote_or_semicolon_in_a_name_ends_nothing() {
    assert_eq!(split("grant select on public.\"t'; x\" to service_role;\ngrant select on public.u to service_role;").len(), 2);
}

#[test]
fn every_statement_knows_its_table() {
    for (text, expected) in [
        ("create unique index i on public.t (a)", Act::Shape("public.t")),
        ("comment on column public.t.a is 'x'", Act::Shape("public.t")),
        ("alter table public.t enable row level security", Act::EnableRowSecurity("public.t")),
        ("revoke all on public.t from public, anon", Act::Rights("public.t")),
        ("grant select on public.t to authenticated", Act::Rights("public.t")),
        ("grant all on public.t to service_role", Act::Other),
        ("create policy p on public.t for select to authenticated using (true)", Act::Rights("public.t")),
        ("create policy p on public.t as restrictive to authenticated\n using (true)", Act::Other),
        ("revoke all on function public.f() from public", Act::Other),
    ] {
        assert_eq!(act(text), expected, "{text}");
    }
}

#[test]
fn a_function_is_named_by_the_types_of_its_arguments() {
    let made =
        made_in_public("-- x\ncreate or replace function public.f(p_a integer default 10, p_b varchar(20)) returns integer as $$ $$;");
    assert_eq!(made, Some(("function", "public.f(integer, varchar(20))".into())));
    assert_eq!(made_in_public("create or replace view public.v with (x) as select 1"), Some(("view", "public.v".into())));
    assert_eq!(made_in_public("create or replace function gleaner.f() returns integer as $$ $$;"), None);
}
