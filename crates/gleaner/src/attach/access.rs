//! What the engine's role needs: rights on the table and its neighbours, and rows it can see.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::{Report, server_version};
use crate::error::{Error, Result};
use crate::introspect::{literal, quote};
use crate::plan::{Mistake, Plan};

/// A right the engine's role needs on one object.
struct Need {
    /// `table`, `schema` or `sequence`, as `grant` wants it.
    kind: &'static str,
    object: String,
    right: &'static str,
}

/// Gives the engine's role what the acts need. Returns how to take it back, for what was not there before: detach leaves
/// no right behind that it did not find.
pub(super) async fn grant_engine(client: &impl GenericClient, plan: &Plan, report: &mut Report) -> Result<Vec<String>> {
    let mut given = Vec::new();
    for need in needs(client, plan).await? {
        let (has, granted) = held(client, &need).await?;
        if granted {
            continue;
        }
        let on = format!("{} on {} {}", need.right, need.kind, need.object);
        match client.batch_execute(&format!("grant {on} to gleaner_engine")).await {
            Ok(()) => given.push(format!("revoke {on} from gleaner_engine")),
            // Through a role it belongs to, or by public: enough, where we may not grant.
            Err(_) if has => {}
            Err(e) => return Err(Error::doing(format!("grant {on} to gleaner_engine"))(e)),
        }
    }
    join_owner(client, plan, report).await?;
    refuse_hidden_rows(client, plan, report).await?;
    Ok(given)
}

/// The same as a script for people to read; the rights on sequences are found when it runs.
pub(crate) fn grant_script(plan: &Plan) -> String {
    let mut script: String =
        tables(plan).iter().map(|need| format!("grant {} on {} {} to gleaner_engine;\n", need.right, need.kind, need.object)).collect();
    script += &format!(
        "do $$ declare v_sequence record; begin
           for v_sequence in select s.oid::regclass as name from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S'
                             where d.refobjid = {}::regclass and d.deptype in ('a', 'i') loop
             execute format('grant usage on sequence %s to gleaner_engine', v_sequence.name);
           end loop;
         end $$;",
        literal(&plan.table.sql())
    );
    script
}

fn tables(plan: &Plan) -> Vec<Need> {
    let mut needs = vec![Need { kind: "schema", object: quote(&plan.table.schema), right: "usage" }];
    let mut add = |object: &str, rights: &[&'static str]| {
        needs.extend(rights.iter().map(|right| Need { kind: "table", object: object.to_owned(), right }));
    };
    add(&plan.table.sql(), &["select", "insert", "update", "delete"]);
    if let Some(owners) = plan.context["owner"]["table"].as_str() {
        add(owners, &["select"]);
    }
    if let Some(dead) = plan.context["dead"]["table"].as_str() {
        add(dead, &["select", "insert"]);
    }
    needs
}

async fn needs(client: &impl GenericClient, plan: &Plan) -> Result<Vec<Need>> {
    let table = plan.table.sql();
    let mut needs = tables(plan);
    let sequences = client
        .query_typed(
            "select s.oid::regclass::text from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S'
             where d.refobjid = to_regclass($1) and d.deptype in ('a', 'i')",
            &[(&table, Type::TEXT)],
        )
        .await
        .map_err(Error::doing("look for the table's sequences"))?;
    needs.extend(sequences.iter().map(|row| Need { kind: "sequence", object: row.get(0), right: "usage" }));
    Ok(needs)
}

/// Whether the engine's role has the right at all, and whether it was granted by name.
async fn held(client: &impl GenericClient, need: &Need) -> Result<(bool, bool)> {
    let (privilege, acl) = match need.kind {
        "schema" => ("has_schema_privilege('gleaner_engine', $1, $2)", "select nspacl from pg_namespace where oid = to_regnamespace($1)"),
        "sequence" => ("has_sequence_privilege('gleaner_engine', $1, $2)", "select relacl from pg_class where oid = to_regclass($1)"),
        _ => ("has_table_privilege('gleaner_engine', $1, $2)", "select relacl from pg_class where oid = to_regclass($1)"),
    };
    let sql = format!(
        "select {privilege}, exists (select from aclexplode(({acl})) a
                                     where a.grantee = 'gleaner_engine'::regrole and lower(a.privilege_type) = $2)"
    );
    // The schema's own functions want its bare name.
    let object = if need.kind == "schema" { need.object.trim_matches('"').replace("\"\"", "\"") } else { need.object.clone() };
    let sql = if need.kind == "schema" { sql.replace("to_regnamespace($1)", "to_regnamespace(quote_ident($1))") } else { sql };
    let rows = client
        .query_typed(&sql, &[(&object, Type::TEXT), (&need.right, Type::TEXT)])
        .await
        .map_err(Error::doing("look at the engine's rights"))?;
    Ok((rows[0].get(0), rows[0].get(1)))
}

/// Users' triggers fire in the acts and run as the engine's role: as a member of the table's owner it has the rights they
/// were written for. Roles are the whole server's, so detach does not undo this.
async fn join_owner(client: &impl GenericClient, plan: &Plan, report: &mut Report) -> Result<()> {
    let owner = literal(&plan.table.owner);
    let how = if server_version(client).await? >= 160_000 { " with inherit true, set false" } else { "" };
    let join = format!(
        "do $$ begin
           if not pg_has_role('gleaner_engine', {owner}, 'usage') then
             execute format('grant %I to gleaner_engine{how}', {owner});
           end if;
         end $$"
    );
    for _ in 0..5 {
        match client.batch_execute(&join).await {
            Ok(()) => return Ok(()),
            // Another database of this server granted at the same moment ("tuple concurrently updated"): look again.
            Err(e) if e.code().is_some_and(|c| c.code() == "XX000") => {}
            Err(_) => break,
        }
    }
    let bystanders = plan.table.bystanders(client).await?;
    let triggers: Vec<String> = bystanders.into_iter().filter(|b| b.kind == "trigger").map(|b| b.name).collect();
    if !triggers.is_empty() {
        report.notes.push(format!(
            "acts run as gleaner_engine, which could not be made a member of {}: the triggers {} must find their rights there (grant them, or make their functions security definer)",
            plan.table.owner,
            triggers.join(", ")
        ));
    }
    Ok(())
}

/// Row security that applies to the engine's role would silently empty every claim, so it is refused here, aloud.
/// A policy that gives the role every row, or the attribute bypassrls, is all it takes.
async fn refuse_hidden_rows(client: &impl GenericClient, plan: &Plan, report: &mut Report) -> Result<()> {
    let mut tables = vec![(plan.table.sql(), "all")];
    tables.extend(plan.context["owner"]["table"].as_str().map(|t| (t.to_owned(), "select")));
    tables.extend(plan.context["dead"]["table"].as_str().map(|t| (t.to_owned(), "insert")));
    let mut mistakes = Vec::new();
    for (table, command) in tables {
        let rows = client
            .query_typed(
                "with engine as (select oid, rolbypassrls or rolsuper as bypass from pg_roles where rolname = 'gleaner_engine'),
                      subject as (
                          select c.oid, c.relforcerowsecurity as forced,
                                 c.relrowsecurity and not engine.bypass
                                 and (c.relforcerowsecurity or not pg_has_role(engine.oid, c.relowner, 'usage')) as active
                          from pg_class c, engine where c.oid = to_regclass($1)),
                      policy as (
                          select p.polpermissive, p.polcmd,
                                 coalesce(pg_get_expr(p.polqual, p.polrelid), 'true') = 'true'
                                 and coalesce(pg_get_expr(p.polwithcheck, p.polrelid), 'true') = 'true' as open
                          from pg_policy p, subject, engine
                          where p.polrelid = subject.oid
                            and exists (select from unnest(p.polroles) r where r = 0 or pg_has_role(engine.oid, r, 'usage')))
                 select forced, active and (
                            exists (select from policy where not polpermissive and not open)
                            or not exists (select from policy where polpermissive and open
                                           and (polcmd = '*' or $2 <> 'all' and polcmd = case $2 when 'select' then 'r' else 'a' end))),
                        active
                 from subject",
                &[(&table, Type::TEXT), (&command, Type::TEXT)],
            )
            .await
            .map_err(Error::doing("check row security"))?;
        let Some(row) = rows.first() else { continue };
        let (forced, hidden, active): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
        if hidden {
            mistakes.push(Mistake {
                what: format!(
                    "{table} has {}row-level security, which would hide its rows from the engine",
                    if forced { "forced " } else { "" }
                ),
                instead: format!(
                    "alter role gleaner_engine bypassrls, or: create policy gleaner_engine on {table} for {command} to gleaner_engine{}{}",
                    if command == "insert" { "" } else { " using (true)" },
                    if command == "select" { "" } else { " with check (true)" }
                ),
            });
        } else if forced {
            let how = if active { "a policy lets the engine's role through" } else { "the engine's role bypasses it" };
            report.notes.push(format!("{table} has forced row-level security; {how}"));
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Error::Declaration { queue: plan.name.clone(), mistakes }) }
}
