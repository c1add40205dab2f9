//! Compares roles, owners, grants and policies as the applied steps define them with those in the database. A backup restored
//! without its roles or owners has every table and row, but acts that no role may call or that run as another role.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::statements;
use crate::error::{Error, Result};

/// The roles that the first step creates.
const ROLES: [&str; 4] = ["anon", "authenticated", "service_role", "gleaner_engine"];

/// The step that creates them.
pub(super) const ROLES_STEP: &str = "engine/tables/0001_roles.sql";

/// One right, role, owner or policy that must exist.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Expectation {
    /// `role`, `member`, `owner`, `execute`, `closed`, `table`, `hidden`, `schema` or `policy`.
    kind: &'static str,
    object: String,
    role: String,
    privilege: String,
}

/// One that does not hold, and the step or queue that requires it.
#[derive(Debug, Clone)]
pub(super) struct Broken {
    pub(super) source: String,
    kind: String,
}

/// What the SQL texts define, in the order they were run. A later revoke undoes an earlier grant.
#[derive(Debug, Default)]
pub(super) struct Expected {
    held: BTreeMap<Expectation, String>,
}

impl Expected {
    /// Reads the SQL of a step or queue.
    pub(super) fn read(&mut self, source: &str, sql: &str) {
        if source == ROLES_STEP {
            for role in ROLES {
                self.expect(source, "role", role, role, "");
            }
            self.expect(source, "member", "", "gleaner_engine", "");
        }
        for statement in statements::split(sql) {
            let text = statements::code(statement).split_whitespace().collect::<Vec<_>>().join(" ");
            if let Some(rest) = text.strip_prefix("alter function ") {
                if let Some((function, role)) = rest.rsplit_once(" owner to ") {
                    self.expect(source, "owner", function, role, "");
                }
            } else if let Some(rest) = text.strip_prefix("grant ") {
                self.grant(source, rest);
            } else if let Some(rest) = text.strip_prefix("revoke ") {
                self.revoke(source, rest);
            } else if let Some((name, rest)) = text.strip_prefix("create policy ").and_then(|rest| rest.split_once(" on ")) {
                self.expect(source, "policy", rest.split(' ').next().unwrap_or_default(), "", name);
            }
        }
    }

    /// Reads the SQL of a queue, which creates its functions as the role that owns them.
    pub(super) fn read_queue(&mut self, source: &str, sql: &str, functions: &[String]) {
        let owner = sql.lines().find_map(|line| line.strip_prefix("set role ")).map(|role| role.trim_end_matches(';'));
        for function in functions {
            owner.into_iter().for_each(|role| self.expect(source, "owner", function, role, ""));
            self.expect(source, "closed", function, "public", "execute");
        }
        self.read(source, sql);
    }

    fn expect(&mut self, source: &str, kind: &'static str, object: &str, role: &str, privilege: &str) {
        let expectation =
            Expectation { kind, object: object.into(), role: role.trim_matches('"').into(), privilege: privilege.trim_matches('"').into() };
        self.held.insert(expectation, source.to_owned());
    }

    fn grant(&mut self, source: &str, rest: &str) {
        let Some((privileges, objects, roles)) = parts(rest, " to ") else { return };
        for role in split_list(roles) {
            for object in split_list(objects) {
                if objects.starts_with("function ") {
                    self.expect(source, "execute", object.trim_start_matches("function "), role, "execute");
                } else if let Some(schema) = object.strip_prefix("schema ") {
                    split_list(privileges).iter().for_each(|p| self.expect(source, "schema", schema, role, p));
                } else if !object.contains(' ') && !privileges.contains('(') {
                    let all = if privileges == "all" { "select, insert, update, delete" } else { privileges };
                    split_list(all).iter().for_each(|p| self.expect(source, "table", object, role, p));
                }
            }
        }
    }

    fn revoke(&mut self, source: &str, rest: &str) {
        let Some((privileges, objects, roles)) = parts(rest, " from ") else { return };
        let roles: BTreeSet<&str> = split_list(roles).into_iter().map(|r| r.trim_matches('"')).collect();
        let everything = objects.strip_prefix("all tables in schema ").map(|schema| format!("{schema}."));
        for object in split_list(objects) {
            let object = object.strip_prefix("function ").unwrap_or(object);
            self.held.retain(|held, _| {
                let same = held.object == object || everything.as_ref().is_some_and(|e| held.kind == "table" && held.object.starts_with(e));
                !(same
                    && matches!(held.kind, "execute" | "table")
                    && roles.contains(held.role.as_str())
                    && (privileges == "all" || split_list(privileges).contains(&held.privilege.as_str())))
            });
            if privileges == "all" && objects.starts_with("function ") && roles.contains("public") {
                self.expect(source, "closed", object, "public", "execute");
            } else if privileges == "all" && everything.is_none() && !object.contains(' ') && roles.contains("anon") {
                self.expect(source, "hidden", object, "anon", "select, insert, update, delete, truncate");
            }
        }
    }

    /// Those that do not hold. A table that was dropped has no rights to check; a function that was dropped counts as missing.
    pub(super) async fn broken(&self, client: &impl GenericClient) -> Result<Vec<Broken>> {
        let column = |part: fn(&Expectation) -> &str| self.held.keys().map(part).collect::<Vec<&str>>();
        let (kinds, objects) = (column(|e| e.kind), column(|e| &e.object));
        let (roles, privileges) = (column(|e| &e.role), column(|e| &e.privilege));
        let sources: Vec<&str> = self.held.values().map(String::as_str).collect();
        let texts = Type::TEXT_ARRAY;
        let rows = client
            .query_typed(
                BROKEN,
                &[
                    (&sources, texts.clone()),
                    (&kinds, texts.clone()),
                    (&objects, texts.clone()),
                    (&roles, texts.clone()),
                    (&privileges, texts),
                ],
            )
            .await
            .map_err(Error::doing("verify roles, owners and grants"))?;
        Ok(rows.iter().map(|r| Broken { source: r.get(0), kind: r.get(1) }).collect())
    }
}

/// Uses `case` and not `and`: asking for a privilege of a role that does not exist is an error.
const BROKEN: &str = "
    with expected as (
        select e.*, r.oid as role_oid,
               case when kind in ('owner', 'execute', 'closed') then to_regprocedure(object) end as function,
               case when kind in ('table', 'hidden', 'policy') then to_regclass(object) end as relation
        from unnest($1, $2, $3, $4, $5) as e (source, kind, object, role, privilege)
        left join pg_roles r on r.rolname = e.role
    )
    select source, kind from expected
    where case kind
        when 'role' then role_oid is null
        when 'member' then role_oid is not null and not (select rolsuper from pg_roles where rolname = current_user)
                           and not case when role_oid is null then false else pg_has_role(current_user, role_oid, 'usage') end
        when 'owner' then function is null or role_oid is null or (select proowner from pg_proc where oid = function) <> role_oid
        when 'execute' then case when function is null or role_oid is null then true else not has_function_privilege(role_oid, function, 'execute') end
        when 'closed' then case when function is null then false else has_function_privilege('public', function, 'execute') end
        when 'table' then case when relation is null then false when role_oid is null then true
                               else not has_table_privilege(role_oid, relation, privilege) end
        when 'hidden' then case when relation is null or role_oid is null then false else has_table_privilege(role_oid, relation, privilege) end
        when 'schema' then case when to_regnamespace(object) is null then false when role_oid is null then true
                                else not has_schema_privilege(role_oid, to_regnamespace(object), privilege) end
        when 'policy' then relation is not null and not exists (select from pg_policy p where p.polrelid = relation and p.polname = privilege)
        else false end";

/// The statements of a versioned file that are about rights, so that they can be run again.
pub(super) fn statements_of(text: &str) -> String {
    let mut script = String::new();
    for statement in statements::split(text) {
        let code = statements::code(statement);
        let is_right = ["grant ", "revoke ", "drop policy "].iter().any(|word| code.starts_with(word))
            || code.starts_with("alter function ") && code.contains(" owner to ");
        if let Some((name, rest)) = code.strip_prefix("create policy ").and_then(|rest| rest.split_once(" on ")) {
            let table = rest.split_whitespace().next().unwrap_or_default();
            script += &format!("drop policy if exists {name} on {table};\n{code};\n");
        } else if is_right {
            script += &format!("{code};\n");
        }
    }
    script
}

/// What was wrong, with counts.
pub(super) fn summary(broken: &[Broken]) -> String {
    let count = |kinds: &[&str]| broken.iter().filter(|b| kinds.contains(&b.kind.as_str())).count();
    let parts = [
        (count(&["role", "member"]), "roles or memberships missing"),
        (count(&["owner"]), "functions with another owner than theirs"),
        (count(&["execute", "table", "schema"]), "grants missing"),
        (count(&["closed", "hidden"]), "objects open to everyone"),
        (count(&["policy"]), "policies missing"),
    ];
    parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect::<Vec<_>>().join(", ")
}

/// Splits `PRIVILEGES on OBJECTS to ROLES`; for functions the word `function` comes before the first object.
fn parts<'a>(rest: &'a str, before_roles: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (privileges, rest) = rest.split_once(" on ")?;
    let (objects, roles) = rest.rsplit_once(before_roles)?;
    Some((privileges.trim(), objects.trim().trim_start_matches("table "), roles.trim()))
}

/// Splits a list at its commas, but not at those inside parentheses or quotes.
fn split_list(list: &str) -> Vec<&str> {
    let (mut out, mut begin, mut depth, mut quoted) = (Vec::new(), 0, 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                out.push(list[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    out.push(list[begin..].trim());
    out
}

#[cfg(test)]
mod tests;
