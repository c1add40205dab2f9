//! What the role that acts run as needs: rights on the table and related tables, and rows it can see.

use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::{Report, server_version};
use crate::error::{Error, Result};
use crate::introspect::quote;
use crate::plan::{Mistake, Plan};

/// The engine's own tables that acts write to. If acts run as the owner of a distributed table, that role needs rights on them too.
const NOTES: &[&str] = &["request", "late_result", "rejected_row", "audit"];

/// A right the role needs on one object.
struct Need {
    /// `table`, `schema`, `sequence` or `function`, as `grant` expects it.
    kind: &'static str,
    object: String,
    right: &'static str,
}

/// Grants the role that acts run as what they need. Returns the statements that revoke what was not granted before, so that
/// detach leaves no right behind that attach added.
pub(super) async fn grant_engine(client: &impl GenericClient, plan: &Plan, report: &mut Report) -> Result<Vec<String>> {
    let mut given = Vec::new();
    let role = quote(plan.acts_owner());
    for need in needs(client, plan).await? {
        let (has, granted) = held(client, &need, plan.acts_owner()).await?;
        if granted {
            continue;
        }
        let on = format!("{} on {} {}", need.right, need.kind, need.object);
        match again_if_raced(client, &format!("grant {on} to {role}")).await {
            Ok(()) => given.push(format!("revoke {on} from {role}")),
            // The role has the right through a role it belongs to, or through public. That is enough if we may not grant.
            Err(_) if has => {}
            Err(e) => return Err(Error::doing(format!("grant {on} to {role}"))(e)),
        }
    }
    if !plan.shape.distributed {
        join_owner(client, plan, report).await?;
    }
    refuse_hidden_rows(client, plan, report).await?;
    Ok(given)
}

/// The same as a script for people to read. The script finds the rights on sequences when it runs.
pub(crate) fn grant_script(plan: &Plan) -> String {
    let mut script: String =
        tables(plan).iter().map(|need| format!("grant {} on {} {} to gleaner_engine;\n", need.right, need.kind, need.object)).collect();
    script += &format!(
        "do {body} declare v_sequence record; begin
           for v_sequence in select s.oid::regclass as name from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S'
                             where d.refobjid = {}::regclass and d.deptype in ('a', 'i') loop
             execute format('grant usage on sequence %s to gleaner_engine', v_sequence.name);
           end loop;
         end {body};",
        plan.shape.table_literal,
        body = plan.shape.body,
    );
    script
}

fn tables(plan: &Plan) -> Vec<Need> {
    let mut needs = vec![Need { kind: "schema", object: quote(&plan.table.schema), right: "usage" }];
    let mut add = |object: &str, rights: &[&'static str]| {
        needs.extend(rights.iter().map(|right| Need { kind: "table", object: object.to_owned(), right }));
    };
    add(&plan.table.sql(), &["select", "insert", "update", "delete"]);
    if let Some(owners) = owner_table(plan) {
        add(owners, &["select"]);
    }
    if let Some(dead) = &plan.shape.dead {
        add(&dead.table, &["select", "insert"]);
    }
    needs
}

fn owner_table(plan: &Plan) -> Option<&str> {
    plan.shape.owner.as_ref().and_then(|o| o.table.as_deref())
}

async fn needs(client: &impl GenericClient, plan: &Plan) -> Result<Vec<Need>> {
    let table = plan.table.sql();
    if plan.shape.distributed {
        return needs_of_owner(client, plan).await;
    }
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

/// The owner of the queue's table has every right on it, but none on the engine's objects.
async fn needs_of_owner(client: &impl GenericClient, plan: &Plan) -> Result<Vec<Need>> {
    let mut needs = vec![Need { kind: "schema", object: "gleaner".into(), right: "usage" }];
    for table in NOTES {
        let object = format!("gleaner.{table}");
        needs.extend(["select", "insert", "update", "delete"].map(|right| Need { kind: "table", object: object.clone(), right }));
    }
    for table in ["late_result", "audit"] {
        needs.push(Need { kind: "sequence", object: format!("gleaner.{table}_id_seq"), right: "usage" });
    }
    needs.extend(called(client, plan).await?.into_iter().map(|object| Need { kind: "function", object, right: "execute" }));
    if let Some(dead) = &plan.shape.dead {
        needs.extend(["select", "insert"].map(|right| Need { kind: "table", object: dead.table.clone(), right }));
    }
    Ok(needs)
}

/// The engine's functions that the acts call, directly or through each other.
async fn called(client: &impl GenericClient, plan: &Plan) -> Result<Vec<String>> {
    let own: Vec<String> = crate::render::functions(plan)?.into_iter().map(|f| f.name).collect();
    let mut others: Vec<(String, String, String)> = client
        .query_typed(
            "select p.proname::text, format('gleaner.%I(%s)', p.proname, oidvectortypes(p.proargtypes)), p.prosrc
             from pg_proc as p where p.pronamespace = 'gleaner'::regnamespace and p.proname <> all ($1) order by 2",
            &[(&own, Type::TEXT_ARRAY)],
        )
        .await
        .map_err(Error::doing("look for the engine's functions"))?
        .iter()
        .map(|r| (r.get(0), r.get(1), r.get(2)))
        .collect();
    let (mut text, mut found) = (crate::render::render(plan)?, Vec::new());
    while !text.is_empty() {
        let (mentioned, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|(name, ..)| text.contains(&format!("gleaner.{name}(")));
        others = rest;
        text = mentioned.iter().map(|(.., source)| source.as_str()).collect();
        found.extend(mentioned.into_iter().map(|(_, signature, _)| signature));
    }
    Ok(found)
}

/// Whether the role has the right at all, and whether it was granted by name.
async fn held(client: &impl GenericClient, need: &Need, role: &str) -> Result<(bool, bool)> {
    let (privilege, acl) = match need.kind {
        "schema" => {
            ("has_schema_privilege($3, to_regnamespace($1)::oid, $2)", "select nspacl from pg_namespace where oid = to_regnamespace($1)")
        }
        "sequence" => ("has_sequence_privilege($3, $1, $2)", "select relacl from pg_class where oid = to_regclass($1)"),
        "function" => ("has_function_privilege($3, $1, $2)", "select proacl from pg_proc where oid = to_regprocedure($1)"),
        _ => ("has_table_privilege($3, $1, $2)", "select relacl from pg_class where oid = to_regclass($1)"),
    };
    let sql = format!(
        "select {privilege}, exists (select from aclexplode(({acl})) a
                                     where a.grantee = (select oid from pg_roles where rolname = $3) and lower(a.privilege_type) = $2)"
    );
    let rows = client
        .query_typed(&sql, &[(&need.object, Type::TEXT), (&need.right, Type::TEXT), (&role, Type::TEXT)])
        .await
        .map_err(Error::doing(format!("look at the rights of {role}")))?;
    Ok((rows[0].get(0), rows[0].get(1)))
}

/// Runs a grant, and retries a few times if another session granted on the same object at the same moment ("tuple concurrently updated").
async fn again_if_raced(client: &impl GenericClient, grant: &str) -> std::result::Result<(), tokio_postgres::Error> {
    for _ in 0..5 {
        match client.batch_execute(grant).await {
            Err(e) if e.code() == Some(&SqlState::INTERNAL_ERROR) => {}
            other => return other,
        }
    }
    client.batch_execute(grant).await
}

/// Users' triggers fire inside the acts and run as the engine's role. As a member of the table's owner, that role has the rights
/// they were written for. Roles belong to the whole server, so detach does not undo this.
async fn join_owner(client: &impl GenericClient, plan: &Plan, report: &mut Report) -> Result<()> {
    let member = client
        .query_typed("select pg_has_role('gleaner_engine', $1, 'usage')", &[(&plan.table.owner, Type::TEXT)])
        .await
        .map_err(Error::doing("look at the engine's roles"))?;
    if member[0].get(0) {
        return Ok(());
    }
    let how = if server_version(client).await? >= 160_000 { " with inherit true, set false" } else { "" };
    let join = format!("grant {} to gleaner_engine{how}", quote(&plan.table.owner));
    if again_if_raced(client, &join).await.is_ok() {
        return Ok(());
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

/// Row security that applies to the role that acts run as would silently make every claim empty, so attach refuses it with an
/// error. A policy that gives the role every row, or the attribute bypassrls, is enough.
async fn refuse_hidden_rows(client: &impl GenericClient, plan: &Plan, report: &mut Report) -> Result<()> {
    let mut tables = vec![(plan.table.sql(), "all")];
    tables.extend(owner_table(plan).map(|t| (t.to_owned(), "select")));
    tables.extend(plan.shape.dead.as_ref().map(|d| (d.table.clone(), "insert")));
    let role = plan.acts_owner();
    let mut mistakes = Vec::new();
    for (table, command) in tables {
        let rows = client
            .query_typed(
                "with engine as (select oid, rolbypassrls or rolsuper as bypass from pg_roles where rolname = $3),
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
                &[(&table, Type::TEXT), (&command, Type::TEXT), (&role, Type::TEXT)],
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
                    "alter role {0} bypassrls, or: create policy gleaner_engine on {table} for {command} to {0}{1}{2}",
                    quote(role),
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
