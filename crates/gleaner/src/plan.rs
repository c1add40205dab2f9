//! A declaration compared with its table: every name resolved, every type known, every mistake told at once.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};
use tokio_postgres::GenericClient;

use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::introspect::{Table, literal, quote};

mod check;
mod columns;
mod dead;
mod indexes;
mod keys;
mod lanes;
mod owner;
mod retry;
mod sheaf;
mod status;

use check::Check;

/// One thing wrong with a declaration, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub what: String,
    pub instead: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.instead)
    }
}

/// A column the engine adds, or finds added before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineColumn {
    pub role: &'static str,
    pub name: String,
    /// Its name unless the declaration renames it.
    pub default_name: &'static str,
    pub definition: &'static str,
    /// The default for rows to come; rows that are there are filled in slices, or stay null.
    pub default: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Index {
    pub name: String,
    pub definition: String,
    pub unique: bool,
}

/// A declaration that fits its table, ready to be rendered.
#[derive(Debug, Clone)]
pub struct Plan {
    pub name: String,
    pub declaration: Declaration,
    pub table: Table,
    pub key: String,
    pub key_type: String,
    pub columns: Vec<EngineColumn>,
    pub indexes: Vec<Index>,
    /// Status words an enum lacks; added only when the author agreed.
    pub missing_labels: Vec<String>,
    /// Everything the templates know, see `sql/engine/acts`.
    pub context: BTreeMap<&'static str, Value>,
}

/// The triggers a queue may have on its table.
pub(crate) const TRIGGERS: [&str; 6] = ["insert", "update", "again", "delete", "truncate", "notify"];

impl Plan {
    /// Compares `declaration` with the database. All mistakes come in one error.
    pub async fn make(client: &impl GenericClient, declaration: &Declaration) -> Result<Self> {
        let name = declaration.name().to_owned();
        let fail = |mistakes| Error::Declaration { queue: name.clone(), mistakes };
        let Some(table) = Table::find(client, &declaration.table).await? else {
            return Err(fail(vec![Mistake {
                what: format!("table = {:?}: there is no such table, or it may not be seen", declaration.table),
                instead: "write schema.table as in psql, and create the table first".into(),
            }]));
        };
        let owner_table = match declaration.owner.as_ref().and_then(|o| o.table.as_deref()) {
            Some(name) => Some((name, Table::find(client, name).await?)),
            None => None,
        };
        let dead_table = match declaration.dead.as_deref() {
            Some(name) => Some((name, Table::find(client, name).await?)),
            None => None,
        };
        let reference = match &dead_table {
            Some((_, Some(dead))) => dead::reference_to(client, dead, &table).await?,
            _ => None,
        };
        let around = Around { owners: owner_table, dead: dead_table, reference, search_path: search_path(client, &table).await? };

        let mut check = Check::new(&table);
        check::check_zone(client, declaration, &mut check).await?;
        check::check_roles(client, declaration, &mut check).await?;
        let plan = plan(&mut check, declaration, around);
        if check.mistakes.is_empty() { Ok(plan.expect("a declaration without mistakes has a plan")) } else { Err(fail(check.mistakes)) }
    }
}

/// What the database says beside the table itself.
struct Around<'a> {
    /// The owner table by the name it was given, if there is one of that name.
    owners: Option<(&'a str, Option<Table>)>,
    dead: Option<(&'a str, Option<Table>)>,
    /// The dead letters' column that refers to the table.
    reference: Option<String>,
    search_path: String,
}

/// One pass over the declaration, key by key, in the order of the manual. `None` goes with mistakes.
fn plan(check: &mut Check<'_>, d: &Declaration, around: Around<'_>) -> Option<Plan> {
    let (name, table) = (d.name().to_owned(), check.table);
    let mut context: BTreeMap<&'static str, Value> = BTreeMap::new();

    keys::check_subject(check, d);
    let tenant = keys::tenant(check, d);
    let key = keys::key(check, d);
    let status = status::status(check, d);
    keys::check_partitions(check, d);
    let engine = columns::engine(check, d);
    context.insert("attempts_declared", d.attempts.is_some().into());

    let zone = d.zone.clone().unwrap_or_else(|| "UTC".into());
    context.insert("zone", literal(&zone).into());
    let created = columns::created(check, d);
    let due = columns::due(check, d, &engine);
    let finished = columns::time(check, "finished", d.finished.as_ref());

    let kind = lanes::kind(check, d);
    let priority = lanes::priority(check, d);
    let lane = lanes::lane(kind.as_ref(), priority.as_ref());
    let owner = owner::owner(check, d, created.is_some() || due.is_some(), around.owners.as_ref());

    let result = columns::simple(check, "result", d.result.as_ref(), &["jsonb", "text", "character varying"]);
    let progress = columns::simple(
        check,
        "progress",
        d.progress.as_ref(),
        &["jsonb", "text", "character varying", "integer", "smallint", "numeric", "double precision", "real"],
    );
    columns::simple(check, "payload", d.payload.as_ref(), &[]);
    let unique_column = columns::simple(check, "unique", d.unique.as_ref(), &[]);
    let error = columns::place(check, "error", d.error.as_ref(), &["jsonb", "text", "character varying"]);
    let recovered = columns::place(check, "recovered", d.recovered.as_ref(), &[]);
    let holder = columns::holder(check, d);

    retry::durations(check, d, kind.as_ref(), &mut context);
    retry::retries(check, d, created.as_ref(), &zone, &mut context);
    let retain = d.retain.as_ref().map(|r| check.duration("retain", r));
    if retain.is_some() && finished.is_none() {
        check.mistake("retain needs to know when work ended", "declare `finished`, a timestamp column");
    }
    let dead = dead::dead(check, key.as_ref().and_then(|k| k["name"].as_str()), around.dead.as_ref(), around.reference);

    let (key_parts, (status, missing_labels)) = (key?, status?);
    let (key, key_type) = (key_parts["name"].as_str()?.to_owned(), key_parts["type"].as_str()?.to_owned());
    let s = |k: &str| status[k].as_str().unwrap_or_default().to_owned();
    let c = |role: &str| engine.column(role);

    let claimable = |a: &str| format!("{a}{} in ({}) and {a}{} is not null", s("column"), s("claimable"), c("due"));
    context.insert("claimable", claimable("q.").into());
    // What stands in the line by itself, and in the probe index: rows that lie in a swath wait by its record. The lease comes first: it
    // is the cheapest to ask, and COPY asks it of every row.
    let standing = |a: &str| if d.sheaf.is_some() { format!("{a}{} <> -1 and {}", c("lease"), claimable(a)) } else { claimable(a) };
    context.insert("standing", standing("q.").into());
    // All that is not finished, as a source called `q`: what stands in the line, what lies in swaths, and what sheaves hold of those.
    let mut unfinished = format!("select q.* from {} as q where {}", table.sql(), standing("q."));
    if d.sheaf.is_some() {
        unfinished += &format!(
            " union all
                select q.* from unnest(gleaner.swaths({queue}) + gleaner.sheaves({queue})) as r cross join lateral (
                    select q.* from {} as q where q.{key} >= lower(r) and q.{key} < upper(r) order by q.{key} offset 0
                ) as q
                where q.{} = -1 and {}",
            table.sql(),
            c("lease"),
            claimable("q."),
            queue = literal(&name),
            key = quote(&key),
        );
    }
    context.insert("unfinished", format!("({unfinished}) as q").into());
    if let Some(r) = &recovered {
        context.insert(
            "recovered_value",
            format!("jsonb_set(coalesce(q.{0}, '{{}}'), {1}, to_jsonb(q.{2} + 1))", r["column"].as_str()?, r["path"].as_str()?, c("lost"))
                .into(),
        );
    }
    retry::poison(d, &status, &engine, &mut context);

    // Unique keys cover waiting rows only: a running row does not block its successor.
    if let Some(u) = &unique_column {
        let column = u["column"].as_str()?;
        let predicate = format!("{column} is not null and {} is not null and {} in ({})", c("due"), s("column"), s("waiting"));
        let target = match &tenant {
            Some(t) => format!("{}, {column}", t["column"].as_str()?),
            None => column.to_owned(),
        };
        let info = &table.columns[u["name"].as_str()?];
        context.insert(
            "unique",
            json!({"name": u["name"], "column": column, "type": info.data_type, "target": target,
            "predicate": predicate, "predicate_in_text": predicate.replace('\'', "''")}),
        );
    } else {
        context.insert("unique", Value::Null);
    }

    let mut guarded: Vec<String> = Vec::new();
    for part in [&result, &progress] {
        guarded.extend(part.iter().filter_map(|p| p["column"].as_str().map(str::to_owned)));
    }
    // An error kept inside a shared jsonb column leaves that column free for others to edit.
    guarded.extend(error.iter().filter(|e| e["path"].is_null()).filter_map(|e| e["column"].as_str().map(str::to_owned)));
    for part in ["by", "at"] {
        guarded.extend(holder[part]["column"].as_str().map(str::to_owned));
    }
    context.insert("guarded", json!(guarded));

    let own_columns: Vec<String> = engine
        .columns
        .iter()
        .map(|c| c.name.clone())
        .filter(|n| {
            Some(n.as_str()) != engine.names.get("due").and_then(Value::as_str)
                && Some(n.as_str()) != engine.names.get("open").and_then(Value::as_str)
        })
        .collect();
    context.insert("engine_names", own_columns.iter().map(|n| literal(n)).collect::<Vec<_>>().join(", ").into());
    let mut unique_names = vec![literal(&key)];
    unique_names.extend(d.unique.iter().map(|u| literal(u)));
    unique_names.extend(d.tenant.iter().map(|t| literal(t)));
    context.insert("unique_names", unique_names.join(", ").into());

    if !d.adapt_inserts && (d.owner.is_some() || d.due.is_some()) {
        check.mistake(
            "adapt_inserts = false: an owner's policy and an appointed time are stamped by the adapter",
            "leave `adapt_inserts` out, or declare neither `owner` nor `due`",
        );
    }
    context.insert("adapt_inserts", d.adapt_inserts.into());
    // What a claim writes, by name: anything over these columns may refuse it.
    let mut claimed: Vec<&str> = engine.columns.iter().map(|c| c.name.as_str()).collect();
    claimed.push(&d.status.column);
    claimed.extend(recovered.iter().filter_map(|r| r["name"].as_str()));
    claimed.extend(["by", "at"].iter().filter_map(|part| holder[part]["name"].as_str()));
    // Whether nothing on the table can refuse what a claim writes, as SQL.
    let plain = format!(
        "gleaner.is_plain({}, array[{}], {})",
        literal(&table.sql()),
        claimed.into_iter().map(literal).collect::<Vec<_>>().join(", "),
        literal(&d.status.column)
    );
    context.insert("plain", if table.kind == 'p' { "false".into() } else { plain.into() });
    context.insert(
        "dead_reason_new",
        match &error {
            Some(e) if !e["path"].is_null() => {
                format!("new.{} #>> ({}::text[] || '{{message}}'::text[])", e["column"].as_str()?, e["path"].as_str()?)
            }
            Some(e) if e["type"] == "jsonb" => format!("new.{} ->> 'message'", e["column"].as_str()?),
            Some(e) => format!("new.{}", e["column"].as_str()?),
            None => "format('failed %s times', v_attempts)".into(),
        }
        .into(),
    );

    // What only acts may change where no adapter turns plain updates into acts.
    let mut acts_alone: Vec<&str> = engine.columns.iter().map(|c| c.name.as_str()).collect();
    acts_alone.extend([key.as_str(), &d.status.column]);
    acts_alone.extend(d.due.as_deref().filter(|due| !engine.columns.iter().any(|c| c.name == *due)));
    // And what a swath says of all its rows.
    acts_alone.extend(d.kind.as_deref().into_iter().chain(d.priority.as_ref().map(|p| p.column.as_str())).chain(d.unique.as_deref()));
    context.insert("acts_alone", acts_alone.iter().map(|n| quote(n)).collect::<Vec<_>>().join(", ").into());
    let sheaf = sheaf::sheaf(check, d, &key_type, &engine);
    context.insert("sheaf", sheaf.unwrap_or_default());

    let table_sql = table.sql();
    context.insert("table_literal", literal(&table_sql).into());
    context.insert("table_in_text", table_sql.replace('\'', "''").replace('%', "%%").into());
    context.insert("table", table_sql.clone().into());
    context.insert("name", name.clone().into());
    context.insert("search_path", around.search_path.into());
    context.insert("notify", d.notify.into());
    context.insert("retain", retain.map_or(Value::Null, Value::from));
    for trigger in TRIGGERS {
        context.insert(
            match trigger {
                "insert" => "trigger_insert",
                "update" => "trigger_update",
                "again" => "trigger_again",
                "delete" => "trigger_delete",
                "truncate" => "trigger_truncate",
                _ => "trigger_notify",
            },
            // Named to come after the table's own triggers: those may still set a status for the adapter to see.
            format!("zz_gleaner_{trigger}_{name}").into(),
        );
    }

    let indexes = indexes::indexes(
        &name,
        table,
        &indexes::IndexParts {
            tenant: tenant.as_ref().and_then(|t| t["column"].as_str()).map(str::to_owned),
            key: quote(&key),
            lane: lane.as_ref().and_then(|l| l["bare"].as_str()).map(str::to_owned),
            owner: owner.as_ref().and_then(|o| o["column"].as_str()).map(str::to_owned),
            due: c("due"),
            open: c("open"),
            standing: standing(""),
            dead: format!("{} is null and {} = {}", c("due"), s("column"), s("failed")),
            unique: context["unique"]["target"]
                .as_str()
                .map(|t| (t.to_owned(), context["unique"]["predicate"].as_str().unwrap_or_default().to_owned())),
            // Bulk work does without: its prune walks the key.
            finished: finished
                .as_ref()
                .filter(|_| d.retain.is_some() && d.sheaf.is_none())
                .and_then(|f| f["column"].as_str())
                .map(str::to_owned),
        },
    );

    context.insert("key", key_parts);
    context.insert("tenant", tenant.unwrap_or_default());
    context.insert("status", status);
    context.insert("col", Value::Object(engine.quoted));
    context.insert("col_names", Value::Object(engine.names));
    context.insert("created", created.unwrap_or_default());
    context.insert("due", due.unwrap_or_default());
    context.insert("finished", finished.unwrap_or_default());
    context.insert("kind", kind.unwrap_or_default());
    context.insert("priority", priority.unwrap_or_default());
    context.insert("lane", lane.unwrap_or_default());
    context.insert("owner", owner.unwrap_or_default());
    context.insert("result", result.unwrap_or_default());
    context.insert("progress", progress.unwrap_or_default());
    context.insert("error", error.unwrap_or_default());
    context.insert("recovered", recovered.unwrap_or_default());
    context.insert("holder", holder);
    context.insert("dead", dead.unwrap_or_default());

    let columns = engine.columns;
    Some(Plan { name, declaration: d.clone(), table: table.clone(), key, key_type, columns, indexes, missing_labels, context })
}

/// What the rendered functions resolve unqualified names against: the table's own triggers inherit it. The schemas of whoever
/// attaches belong to it, for those triggers were written under such a path; the temporary one comes last, or anybody's
/// temporary table could stand in for a real one.
async fn search_path(client: &impl GenericClient, table: &Table) -> Result<String> {
    let rows = client.query_typed("select current_schemas(false)::text[]", &[]).await.map_err(Error::doing("read the search path"))?;
    let mut path = vec!["pg_catalog".to_owned()];
    let session: Vec<String> = rows[0].get(0);
    // Our own schema is on the path of a user called gleaner ("$user"), and nobody's trigger means it.
    let session = session.into_iter().filter(|schema| !schema.starts_with("pg_") && schema != "gleaner");
    for schema in [table.schema.clone(), "public".to_owned()].into_iter().chain(session) {
        if !path.contains(&quote(&schema)) {
            path.push(quote(&schema));
        }
    }
    path.push("pg_temp".into());
    Ok(path.join(", "))
}
