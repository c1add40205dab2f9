use super::*;

#[test]
fn a_later_revoke_takes_an_earlier_grant_back() {
    let mut expected = Expected::default();
    expected.read("a", "grant select, insert on public.t to authenticated, service_role;");
    expected.read("b", "revoke all on public.t from public, anon, authenticated;\ngrant select on public.t to authenticated;");
    let held: Vec<String> = expected.held.keys().map(|e| format!("{} {} {}", e.kind, e.role, e.privilege)).collect();
    assert_eq!(
        held,
        [
            "hidden anon select, insert, update, delete, truncate",
            "table authenticated select",
            "table service_role insert",
            "table service_role select"
        ]
    );
}

#[test]
fn functions_are_named_with_their_arguments() {
    let mut expected = Expected::default();
    let sql = "alter function gleaner.f(integer, text[]) owner to gleaner_engine;\ngrant execute on function gleaner.f(integer, text[]) to \"me too\";";
    expected.read("q", sql);
    let held: Vec<String> = expected.held.keys().map(|e| format!("{} {} {}", e.kind, e.object, e.role)).collect();
    assert_eq!(held, ["execute gleaner.f(integer, text[]) me too", "owner gleaner.f(integer, text[]) gleaner_engine"]);
}
