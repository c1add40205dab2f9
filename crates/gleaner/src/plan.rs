//! A declaration compared with its table: every name resolved, every type known, every mistake reported at once.

use std::fmt;

use serde::Serialize;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::introspect::{Table, literal, quote};

mod bulk;
mod check;
mod columns;
mod dead;
mod distributed;
mod indexes;
mod keys;
mod lanes;
mod owner;
mod retry;
/// The values that templates use. It changes with the templates, and is not part of the stable interface.
#[doc(hidden)]
pub mod shape;
mod status;

use check::Check;
use columns::Columns;
use shape::{ColumnRef, Conditions, Content, Engine, EngineColumns, Holder, Key, Place, Shape, Status, Unique, in_format, in_text};

/// One thing wrong with a declaration, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub instead: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.instead)
    }
}

/// A column that the engine adds, or that was added before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineColumn {
    /// What it is for.
    pub role: &'static str,
    /// Its name in this table.
    pub name: String,
    /// Its name unless the declaration renames it.
    pub default_name: &'static str,
    /// Its type, as SQL.
    pub definition: &'static str,
    /// The default for new rows. Existing rows are filled in slices, or stay null.
    pub default: &'static str,
}

/// An index the engine needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// What follows `create index NAME on`, as SQL.
    pub definition: String,
    /// Whether it is unique.
    pub unique: bool,
}

/// A declaration that fits its table, ready to be rendered.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The queue's name.
    pub name: String,
    /// What the author wrote.
    pub declaration: Declaration,
    /// The table as it exists.
    pub table: Table,
    /// The key column, unquoted.
    pub key: String,
    /// The type of the key.
    pub key_type: String,
    /// Columns that the engine needs.
    pub columns: Vec<EngineColumn>,
    /// Indexes that the engine needs.
    pub indexes: Vec<Index>,
    /// Status values that an enum lacks; added only if the author agreed.
    pub missing_labels: Vec<String>,
    /// Schemas that the rendered functions do not look in, because anyone may create objects there.
    pub open_schemas: Vec<String>,
    /// Everything the templates can use.
    pub shape: Shape,
}

/// The triggers a queue may have on its table.
#[cfg(feature = "schema")]
pub(crate) const TRIGGERS: [&str; 7] = ["insert", "update", "again", "lock", "delete", "truncate", "notify"];

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
        let path = SearchPath::of(client, &table).await?;
        let around = Around { owners: owner_table, dead: dead_table, reference, path };

        let mut check = Check::new(&table);
        check::check_zone(client, declaration, &mut check).await?;
        check::check_roles(client, declaration, &mut check).await?;
        let plan = plan(&mut check, declaration, around);
        if check.mistakes.is_empty() { Ok(plan.expect("a declaration without mistakes has a plan")) } else { Err(fail(check.mistakes)) }
    }
}

impl Plan {
    /// The role that the acts run as. Nodes of a Citus cluster connect to each other as that role, so there it is the table's
    /// owner, which can log in.
    #[cfg(feature = "schema")]
    pub(crate) fn acts_owner(&self) -> &str {
        if self.shape.distributed { &self.table.owner } else { "gleaner_engine" }
    }
}

/// What the database says besides the table itself.
struct Around<'a> {
    /// The name given for the owner table, and the table if it exists.
    owners: Option<(&'a str, Option<Table>)>,
    dead: Option<(&'a str, Option<Table>)>,
    /// The column of the dead letter table that refers to the queue's table.
    reference: Option<String>,
    path: SearchPath,
}

/// The types that a progress column may have.
const PROGRESS_TYPES: &[&str] = &["jsonb", "text", "character varying", "integer", "smallint", "numeric", "double precision", "real"];

/// One pass over the declaration, key by key, in the order of the manual. Returns `None` when there are mistakes.
fn plan(check: &mut Check<'_>, d: &Declaration, around: Around<'_>) -> Option<Plan> {
    let (name, table) = (d.name().to_owned(), check.table);
    keys::check_subject(check, d);
    let tenant = keys::tenant(check, d);
    let key = keys::key(check, d);
    let status = status::status(check, d);
    keys::check_partitions(check, d);
    let engine = columns::engine(check, d);

    let zone = d.zone.clone().unwrap_or_else(|| "UTC".into());
    let created = columns::created(check, d);
    let (due, finished) = (columns::due(check, d, &engine), columns::time(check, "finished", d.finished.as_ref()));

    let (kind, priority, lane) = lanes::lanes(check, d);
    let owner = owner::owner(check, d, created.is_some() || due.is_some(), around.owners.as_ref());

    let result = columns::content(check, "result", d.result.as_ref(), &["jsonb", "text", "character varying"]);
    let progress = columns::content(check, "progress", d.progress.as_ref(), PROGRESS_TYPES);
    columns::simple(check, "payload", d.payload.as_ref(), &[]);
    let unique_column = columns::simple(check, "unique", d.unique.as_ref(), &[]);
    let error = columns::place(check, "error", d.error.as_ref(), &["jsonb", "text", "character varying"]);
    let recovered = columns::place(check, "recovered", d.recovered.as_ref(), &[]);
    let holder = columns::holder(check, d);

    let hold = retry::duration(check, d, kind.as_ref(), "hold", d.hold.as_ref(), "5 minutes");
    let deadline = retry::duration(check, d, kind.as_ref(), "deadline", d.deadline.as_ref(), "1 hour");
    let (retry, may_retry, may_retry_old) = retry::retries(check, d, created.as_ref(), &zone);
    let retain = d.retain.as_ref().map(|r| check.duration("retain", r));
    check_together(check, d, finished.is_some());
    let dead = dead::dead(check, d, key.as_ref().map(|k| k.name.as_str()), around.dead.as_ref(), around.reference);
    let distributed = distributed::distributed(check, d, around.dead.as_ref());

    let (key, (status, missing_labels)) = (key?, status?);
    let bulk = bulk::bulk(check, d, &key.data_type, &engine);
    let col = engine.names.map(quote);
    let unique = unique_column.map(|u| unique(u, tenant.as_ref(), &status, &col));
    let poison = retry::poison(d, &status, &col);
    let groups = check::groups(check, d);
    let admits = check::admits(check, d, groups.as_ref());
    let recovered_value = recovered.as_ref().map(|r| recovered_value(r, &col.lost));
    let trigger = |event: &str| trigger_name(event, &name);
    let shape = Shape {
        name_literal: literal(&name),
        table: table.sql(),
        table_literal: literal(&table.sql()),
        table_in_text: in_text(&table.sql()),
        table_text: in_format(&table.sql()),
        body: String::new(),
        search_path: around.path.sql,
        grant: shape::Grant::new(&d.grant, groups, admits),
        engine: if bulk.is_some() { Engine::Bulk } else { Engine::Rows },
        distributed,

        parts: keys::parts(check, &key.name, d.tenant.as_deref()),
        when: Conditions::new(&status, &col.due),
        col_names: engine.names.clone(),
        col_literals: engine.names.map(literal),
        attempts_declared: d.attempts.is_some(),
        zone: literal(&zone),
        recovered_value,
        dead_reason_new: dead_reason(error.as_ref()),

        hold: hold.q,
        hold_of_row: hold.v_row,
        hold_new: hold.new,
        deadline: deadline.q,
        deadline_of_row: deadline.v_row,
        deadline_new: deadline.new,
        retry,
        may_retry,
        may_retry_old,
        lost_now: poison.lost_now,
        poisoned: poison.poisoned,
        poison_reason: poison.reason,
        poison_category: poison.category,

        claimable: claimable(&status, &col, "q."),
        standing: standing(d, &status, &col, "q."),
        unfinished: unfinished(d, table, &key, &status, &col, owner.as_ref().map(|o| o.column.as_str())),
        plain: format!("gleaner.is_plain({})", plain_arguments(d, table, &engine, recovered.as_ref(), &holder)),
        plain_arguments: plain_arguments(d, table, &engine, recovered.as_ref(), &holder),
        guarded: guarded(result.as_ref(), progress.as_ref(), error.as_ref(), &holder),
        engine_names: engine_names(&engine),
        unique_names: [&key.name].into_iter().chain(&d.unique).chain(&d.tenant).map(|n| literal(n)).collect::<Vec<_>>().join(", "),
        acts_alone: acts_alone(d, &key, &engine),
        adapt_inserts: d.adapt_inserts && !distributed,
        notify: d.notifies() && !distributed,
        notify_on: notify_on(d),
        trigger_insert: trigger("insert"),
        trigger_update: trigger("update"),
        trigger_again: trigger("again"),
        trigger_lock: trigger("lock"),
        trigger_delete: trigger("delete"),
        trigger_truncate: trigger("truncate"),
        trigger_notify: trigger("notify"),
        name: name.clone(),
        tenant,
        key,
        status,
        col,
        created,
        due,
        finished,
        kind,
        priority,
        lane,
        owner,
        result,
        progress,
        unique,
        error,
        recovered,
        holder,
        dead,
        retain,
        bulk,
    }
    .quoted();
    let indexes = indexes::indexes(table, d, &shape, &standing(d, &shape.status, &shape.col, ""));
    let (key, key_type) = (shape.key.name.clone(), shape.key.data_type.clone());
    let (declaration, table, columns, open_schemas) = (d.clone(), table.clone(), engine.own, around.path.left_out);
    Some(Plan { name, declaration, table, key, key_type, indexes, columns, missing_labels, open_schemas, shape })
}

/// Settings that are valid only together with others.
fn check_together(check: &mut Check<'_>, d: &Declaration, has_finished: bool) {
    if d.retain.is_some() && !has_finished {
        check.mistake("retain needs to know when work ended", "declare `finished`, a timestamp column");
    }
    if !d.adapt_inserts && (d.owner.is_some() || d.due.is_some()) {
        check.mistake(
            "adapt_inserts = false: an owner's policy and an appointed time are stamped by the adapter",
            "leave `adapt_inserts` out, or declare neither `owner` nor `due`",
        );
    }
}

/// The columns whose changes may mean new work.
fn notify_on(d: &Declaration) -> Vec<String> {
    let columns = [Some(&d.status.column), d.due.as_ref(), d.owner.as_ref().map(|o| &o.column)];
    columns.into_iter().flatten().map(|name| quote(name)).collect()
}

/// One more lease was lost.
fn recovered_value(recovered: &Place, lost: &str) -> String {
    let path = recovered.path.as_deref().unwrap_or_default();
    format!("jsonb_set(coalesce(q.{0}, '{{}}'), {path}, to_jsonb(q.{lost} + 1))", recovered.column)
}

/// The name sorts after the table's own triggers: those may still set a status that the adapter must see.
pub(crate) fn trigger_name(event: &str, queue: &str) -> String {
    format!("zz_gleaner_{event}_{queue}")
}

fn claimable(status: &Status, col: &EngineColumns, row: &str) -> String {
    format!("{row}{} in ({}) and {row}{} is not null", status.column, status.claimable, col.due)
}

/// Rows that are claimed one by one, through the probe index. Rows in a bulk range wait through the range's record. The lease is
/// tested first: it is the cheapest test, and COPY runs it for every row.
fn standing(d: &Declaration, status: &Status, col: &EngineColumns, row: &str) -> String {
    let claimable = claimable(status, col, row);
    if d.bulk.is_some() { format!("{row}{} <> -1 and {claimable}", col.lease) } else { claimable }
}

/// All unfinished rows, as a source called `q`: single rows, rows in bulk ranges, and those of them that batch leases hold.
fn unfinished(d: &Declaration, table: &Table, key: &Key, status: &Status, col: &EngineColumns, owner: Option<&str>) -> String {
    let mut sql = format!("select q.* from {} as q where {}", table.sql(), standing(d, status, col, "q."));
    // Owned rows and the others have an index each. Without saying which, neither would be used.
    if let Some(owner) = owner {
        sql = format!("{sql} and q.{owner} is not null union all {sql} and q.{owner} is null");
    }
    if d.bulk.is_some() {
        sql += &format!(
            " union all
                select q.* from unnest(gleaner.range_keys({queue}) + gleaner.batch_keys({queue})) as r cross join lateral (
                    select q.* from {} as q where q.{key} >= lower(r) and q.{key} < upper(r) order by q.{key} offset 0
                ) as q
                where q.{} = -1 and {}",
            table.sql(),
            col.lease,
            claimable(status, col, "q."),
            queue = literal(d.name()),
            key = key.column,
        );
    }
    format!("({sql}) as q")
}

/// Unique keys cover waiting rows only: a running row does not block its successor.
fn unique(base: ColumnRef, tenant: Option<&ColumnRef>, status: &Status, col: &EngineColumns) -> Unique {
    let column = &base.column;
    let predicate = format!("{column} is not null and {} is not null and {} in ({})", col.due, status.column, status.waiting);
    let target = match tenant {
        Some(t) => format!("{}, {column}", t.column),
        None => column.clone(),
    };
    Unique { target, predicate_in_text: in_text(&predicate), predicate, base }
}

/// Columns that only the row's holder writes while it is held.
fn guarded(result: Option<&Content>, progress: Option<&Content>, error: Option<&Place>, holder: &Holder) -> Vec<String> {
    let contents = result.into_iter().chain(progress).map(|c| &c.column);
    // An error stored inside a shared jsonb column leaves that column free for others to edit.
    let error = error.filter(|e| e.path.is_none()).map(|e| &e.column);
    contents.chain(error).chain(holder.by.iter().chain(&holder.at).map(|c| &c.column)).cloned().collect()
}

/// The names that an item may not set, as literals: all engine columns except the times.
fn engine_names(engine: &Columns) -> String {
    let names = &engine.names;
    let times = |name: &String| *name == names.due || Some(name) == names.open.as_ref();
    engine.own.iter().map(|c| &c.name).filter(|n| !times(n)).map(|n| literal(n)).collect::<Vec<_>>().join(", ")
}

/// Whether nothing on the table can reject what a claim writes, as SQL.
fn plain_arguments(d: &Declaration, table: &Table, engine: &Columns, recovered: Option<&Place>, holder: &Holder) -> String {
    let mut claimed: Vec<&str> = engine.own.iter().map(|c| c.name.as_str()).collect();
    claimed.push(&d.status.column);
    claimed.extend(recovered.map(|r| r.name.as_str()));
    claimed.extend(holder.by.iter().chain(&holder.at).map(|c| c.name.as_str()));
    format!(
        "{}, array[{}], {}",
        literal(&table.sql()),
        claimed.into_iter().map(literal).collect::<Vec<_>>().join(", "),
        literal(&d.status.column)
    )
}

/// The reason why the row `new` is dead, as its writer gave it.
fn dead_reason(error: Option<&Place>) -> String {
    match error {
        Some(Place { base, path: Some(path) }) => format!("new.{} #>> ({path}::text[] || '{{message}}'::text[])", base.column),
        Some(e) if e.data_type == "jsonb" => format!("new.{} ->> 'message'", e.column),
        Some(e) => format!("new.{}", e.column),
        None => "format('failed %s times', v_attempts)".into(),
    }
}

/// Columns that only acts may change if no adapter turns plain updates into acts.
fn acts_alone(d: &Declaration, key: &Key, engine: &Columns) -> String {
    let mut names: Vec<&str> = engine.own.iter().map(|c| c.name.as_str()).collect();
    names.extend([key.name.as_str(), &d.status.column]);
    names.extend(d.due.as_deref().filter(|due| !engine.own.iter().any(|c| c.name == *due)));
    // Also the columns whose values a bulk range records for all its rows.
    names.extend(d.kind.as_deref().into_iter().chain(d.priority.as_ref().map(|p| p.column.as_str())).chain(d.unique.as_deref()));
    names.iter().map(|n| quote(n)).collect::<Vec<_>>().join(", ")
}

/// The search path with which the rendered functions resolve unqualified names. The table's own triggers inherit it.
struct SearchPath {
    sql: String,
    left_out: Vec<String>,
}

impl SearchPath {
    /// It includes the schemas of the role that attaches, because those triggers were written under such a path. The temporary
    /// schema comes last, or a temporary table could replace a real one. A schema in which anyone may create objects is left out:
    /// an operator or function there that matches better than a built-in one would run with the engine's rights.
    async fn of(client: &impl GenericClient, table: &Table) -> Result<Self> {
        let rows = client
            .query_typed(
                "select n.nspname::text, exists (
                            select from aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as a
                            where a.grantee = 0 and a.privilege_type = 'CREATE')
                        or exists (
                            select from pg_roles as r
                            where r.rolname in ('anon', 'authenticated') and has_schema_privilege(r.oid, n.oid, 'create'))
                 from unnest(array[$1, 'public'] || current_schemas(false)::text[]) with ordinality as path (schema, place)
                 join pg_namespace as n on n.nspname = path.schema
                 -- Our own schema is on the path of a user called gleaner (\"$user\"), and no trigger means it.
                 where n.nspname not like 'pg\\_%' and (n.nspname <> 'gleaner' or path.place = 1)
                 group by n.oid, n.nspname, n.nspacl, n.nspowner order by min(path.place)",
                &[(&table.schema, Type::TEXT)],
            )
            .await
            .map_err(Error::doing("read the search path"))?;
        let (open, safe): (Vec<_>, Vec<_>) = rows.iter().map(|r| (r.get(0), r.get(1))).partition(|(_, open): &(String, bool)| *open);
        let schemas = safe.iter().map(|(schema, _)| quote(schema));
        let path: Vec<String> = ["pg_catalog".to_owned()].into_iter().chain(schemas).chain(["pg_temp".to_owned()]).collect();
        Ok(Self { sql: path.join(", "), left_out: open.into_iter().map(|(schema, _)| schema).collect() })
    }
}
