//! A declaration compared with its table: every name resolved, every type known, every mistake told at once.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};
use tokio_postgres::GenericClient;

use crate::declaration::{Declaration, Lost, PerKind, is_duration};
use crate::error::{Error, Result};
use crate::introspect::{Column, Table, literal, quote};

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

/// Engine columns: role, type, default. Roles are also the keys of `rename`.
const COLUMNS: &[(&str, &str, &str, &str)] = &[
    ("due", "due_at", "timestamptz", "now()"),
    ("open", "open_at", "timestamptz", ""),
    ("lease", "lease", "bigint", "0"),
    ("deadline", "deadline_at", "timestamptz", ""),
    ("attempts", "attempts", "integer", "0"),
    ("lost", "lost", "integer", "0"),
    ("started", "started", "smallint", "0"),
    ("agent", "agent", "text", ""),
    ("session", "session", "text", ""),
];

struct Check<'a> {
    table: &'a Table,
    mistakes: Vec<Mistake>,
}

impl Check<'_> {
    fn mistake(&mut self, what: impl Into<String>, instead: impl Into<String>) {
        self.mistakes.push(Mistake { what: what.into(), instead: instead.into() });
    }

    /// The column `name` declared under `key`, if it exists and its type is one of `types` (any, when empty).
    fn column(&mut self, key: &str, name: &str, types: &[&str]) -> Option<Column> {
        let table = self.table;
        match table.columns.get(name) {
            None => {
                let close = closest(name, table.columns.keys().map(String::as_str));
                self.mistake(
                    format!("{key} = {name:?}: {} has no such column", table.sql()),
                    match close {
                        Some(close) => format!("did you mean {close:?}?"),
                        None => format!("it has {}", table.columns.keys().cloned().collect::<Vec<_>>().join(", ")),
                    },
                );
                None
            }
            Some(column)
                if !types.is_empty() && !types.iter().any(|t| column.data_type == *t || column.data_type.starts_with(&format!("{t}("))) =>
            {
                self.mistake(
                    format!("{key} = {name:?}: the column is {}", column.data_type),
                    format!("name a column of type {}", types.join(" or ")),
                );
                None
            }
            Some(column) => Some(column.clone()),
        }
    }

    fn duration(&mut self, key: &str, text: &str) -> String {
        if !is_duration(text) {
            self.mistake(
                format!("{key} = {text:?} is not a duration"),
                "write a number and a unit, such as \"5 minutes\" or \"1 hour 30 minutes\"",
            );
        }
        format!("interval {}", literal(text))
    }
}

const TEXT: &[&str] = &["text", "character varying", "varchar"];
const TIMES: &[&str] = &["timestamp with time zone", "timestamp without time zone"];
const INTEGERS: &[&str] = &["smallint", "integer", "bigint"];

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
        let dead_reference = match &dead_table {
            Some((_, Some(dead))) => reference_to(client, dead, &table).await?,
            _ => None,
        };
        let search_path = search_path(&table);

        let mut check = Check { table: &table, mistakes: Vec::new() };
        let plan = plan(&mut check, declaration, &table, owner_table, dead_table, dead_reference, &search_path);
        if check.mistakes.is_empty() { Ok(plan.expect("a declaration without mistakes has a plan")) } else { Err(fail(check.mistakes)) }
    }
}

#[allow(clippy::too_many_lines)] // One pass over the declaration, key by key, in the order of the manual.
fn plan(
    check: &mut Check<'_>,
    d: &Declaration,
    table: &Table,
    owner_table: Option<(&str, Option<Table>)>,
    dead_table: Option<(&str, Option<Table>)>,
    dead_reference: Option<String>,
    search_path: &str,
) -> Option<Plan> {
    let name = d.name().to_owned();
    let mut context: BTreeMap<&'static str, Value> = BTreeMap::new();

    let plain = name.len() <= 40
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    if !plain {
        check.mistake(
            format!("name = {name:?}"),
            "use a short name of lower-case letters, digits and underscores: it becomes part of function names",
        );
    }
    match table.kind {
        'r' | 'p' => {}
        other => check.mistake(
            format!(
                "table = {:?} is a {}",
                d.table,
                match other {
                    'v' => "view",
                    'm' => "materialised view",
                    'f' => "foreign table",
                    _ => "relation of another kind",
                }
            ),
            "attach the table it reads from",
        ),
    }

    // Key and tenant.
    let tenant = d.tenant.as_deref().and_then(|t| check.column("tenant", t, &[]).map(|c| (t.to_owned(), c)));
    let rest_of_key: Vec<&String> = table.primary_key.iter().filter(|c| Some(c.as_str()) != d.tenant.as_deref()).collect();
    let key = match (&d.key, rest_of_key.as_slice()) {
        (_, []) => {
            check.mistake(
                format!("{} has no primary key", table.sql()),
                "add one: without it rows cannot be told apart, nor published to subscribers",
            );
            None
        }
        (Some(key), [only]) if key == *only => Some(key.clone()),
        (Some(key), [_]) => {
            check.mistake(format!("key = {key:?} is not the primary key"), format!("leave `key` out: {} is used", rest_of_key[0]));
            None
        }
        (None, [only]) => Some((*only).clone()),
        (_, several) => {
            check.mistake(
                format!("the primary key has {} columns", several.len()),
                "declare all but one of them as `tenant` (one column), or attach a table with a single key column",
            );
            None
        }
    };
    let key_column = key.as_deref().and_then(|k| {
        check.column("key", k, &["bigint", "integer", "smallint", "uuid", "text", "character varying"]).map(|c| (k.to_owned(), c))
    });
    if let Some((column, info)) = &key_column {
        let key_type = if info.data_type.starts_with("character varying") { "text".to_owned() } else { info.data_type.clone() };
        let min = match key_type.as_str() {
            "uuid" => "'00000000-0000-0000-0000-000000000000'::uuid".to_owned(),
            "text" => "''::text".to_owned(),
            "smallint" => "(-32768)::smallint".to_owned(),
            "integer" => "(-2147483648)::integer".to_owned(),
            _ => "(-9223372036854775808)::bigint".to_owned(),
        };
        context.insert("key", json!({"name": column, "column": quote(column), "type": key_type, "min": min}));
    }
    context.insert("tenant", tenant.as_ref().map_or(Value::Null, |(t, c)| json!({"name": t, "column": quote(t), "type": c.data_type})));

    // Status words.
    let status = &d.status;
    let status_column = check.column("status.column", &status.column, &[]);
    let mut missing_labels = Vec::new();
    if let Some(column) = &status_column {
        let is_enum = !column.labels.is_empty();
        let is_text = TEXT.iter().any(|t| column.data_type.starts_with(t));
        if !is_enum && !is_text {
            check.mistake(format!("status.column = {:?}: the column is {}", status.column, column.data_type), "name a text or enum column");
        }
        let mut words = vec![("ready", &status.ready), ("running", &status.running), ("done", &status.done), ("failed", &status.failed)];
        words.extend(status.claimed.iter().map(|w| ("claimed", w)));
        words.extend(status.cancelled.iter().map(|w| ("cancelled", w)));
        for (i, (role, word)) in words.iter().enumerate() {
            if let Some((other, _)) = words[..i].iter().find(|(_, w)| w == word) {
                check.mistake(format!("status.{role} and status.{other} are both {word:?}"), "each needs a word of its own");
            }
            if is_enum && !column.labels.contains(word) {
                missing_labels.push((*word).clone());
            }
        }
        let lit = |word: &str| if is_enum { format!("{}::{}", literal(word), column.data_type) } else { literal(word) };
        let taken = status.claimed.as_deref().unwrap_or(&status.running);
        let cancelled = status.cancelled.as_deref().unwrap_or(&status.failed);
        let held =
            if let Some(claimed) = &status.claimed { format!("{}, {}", lit(claimed), lit(&status.running)) } else { lit(&status.running) };
        let waiting = format!("{}, {}", lit(&status.ready), lit(&status.failed));
        context.insert(
            "status",
            json!({
                "column": quote(&status.column),
                "type": if is_enum { column.data_type.clone() } else { "text".to_owned() },
                "ready": lit(&status.ready),
                "claimed": status.claimed.as_deref().map(lit),
                "running": lit(&status.running),
                "taken": lit(taken),
                "done": lit(&status.done),
                "failed": lit(&status.failed),
                "cancelled": lit(cancelled),
                "held": held,
                "waiting": waiting,
                "claimable": format!("{}, {held}, {}", lit(&status.ready), lit(&status.failed)),
                "final": if status.cancelled.is_some() { format!("{}, {}", lit(&status.done), lit(cancelled)) } else { lit(&status.done) },
            }),
        );
    }
    for column in &table.partition_key {
        if *column == status.column || d.owner.as_ref().is_some_and(|o| o.column == *column) || COLUMNS.iter().any(|c| c.1 == column) {
            check.mistake(
                format!("{} is partitioned by {column:?}, which acts change", table.sql()),
                "partition by a column that stays, such as the creation time: moving rows between partitions fails concurrent acts",
            );
        }
    }

    // The engine's own columns.
    let mut columns = Vec::new();
    let mut col = serde_json::Map::new();
    let mut col_names = serde_json::Map::new();
    for (role, default_name, definition, default) in COLUMNS {
        if *role == "open" && d.owner.is_none() {
            continue;
        }
        if *role == "attempts" {
            if let Some(own) = &d.attempts {
                check.column("attempts", own, INTEGERS);
                col.insert((*role).into(), quote(own).into());
                col_names.insert((*role).into(), own.clone().into());
                continue;
            }
        }
        let column = d.rename.get(*default_name).cloned().unwrap_or_else(|| (*default_name).to_owned());
        if let Some(found) = table.columns.get(&column) {
            let wanted = match *definition {
                "timestamptz" => "timestamp with time zone",
                other => other,
            };
            let fits =
                found.data_type == wanted || (*role == "attempts" || *role == "lost") && INTEGERS.contains(&found.data_type.as_str());
            if !fits {
                check.mistake(
                    format!(
                        "the engine needs a column {column:?} of type {definition}, and {} has one of type {}",
                        table.sql(),
                        found.data_type
                    ),
                    format!("write rename = {{ {default_name} = \"queue_{default_name}\" }}"),
                );
            }
        }
        col.insert((*role).into(), quote(&column).into());
        col_names.insert((*role).into(), column.clone().into());
        columns.push(EngineColumn { role, name: column, definition, default });
    }
    for renamed in d.rename.keys() {
        if !COLUMNS.iter().any(|c| c.1 == renamed) {
            check.mistake(
                format!("rename.{renamed}: the engine has no column of that name"),
                format!("its columns are {}", COLUMNS.iter().map(|c| c.1).collect::<Vec<_>>().join(", ")),
            );
        }
    }
    context.insert("attempts_declared", d.attempts.is_some().into());

    // Times.
    let zone = d.zone.clone().unwrap_or_else(|| "UTC".into());
    context.insert("zone", literal(&zone).into());
    let time = |check: &mut Check<'_>, key: &str, column: &str| {
        check.column(key, column, TIMES).map(|c| json!({"name": column, "column": quote(column), "type": c.data_type}))
    };
    let created = match &d.created {
        Some(column) => time(check, "created", column),
        None => table
            .columns
            .get("created_at")
            .filter(|c| TIMES.contains(&c.data_type.as_str()))
            .map(|c| json!({"name": "created_at", "column": "created_at", "type": c.data_type})),
    };
    let due = d.due.as_ref().and_then(|c| time(check, "due", c));
    let finished = d.finished.as_ref().and_then(|c| time(check, "finished", c));
    if d.due.as_deref() == col_names.get("due").and_then(Value::as_str) {
        check.mistake(
            format!("due = {:?} is the engine's own column", d.due.as_deref().unwrap_or_default()),
            "leave `due` out, or rename the engine's: rename = { due_at = \"queue_due_at\" }",
        );
    }

    // Kind and priority.
    let kind = d.kind.as_deref().and_then(|k| {
        let column = check.column("kind", k, &[])?;
        let is_text = TEXT.iter().any(|t| column.data_type.starts_with(t));
        if !is_text && column.labels.is_empty() {
            check.mistake(format!("kind = {k:?}: the column is {}", column.data_type), "name a text or enum column");
        } else if !is_text && !column.not_null {
            check.mistake(
                format!("kind = {k:?}: an enum that may be null cannot lead an index of kinds"),
                format!("alter table {} alter column {} set not null", table.sql(), quote(k)),
            );
        }
        // Rows without a kind are of the empty kind: claimed by agents that take anything.
        let wrap = |prefix: &str| {
            if is_text && !column.not_null { format!("coalesce({prefix}{}, '')", quote(k)) } else { format!("{prefix}{}", quote(k)) }
        };
        Some(json!({"name": k, "column": quote(k), "type": if is_text { "text".to_owned() } else { column.data_type.clone() },
                    "of": wrap("q."), "bare": wrap(""), "of_row": wrap("v_row."), "of_new": wrap("new.")}))
    });
    let priority = d.priority.as_ref().and_then(|p| {
        let column = check.column("priority.column", &p.column, &[])?;
        if p.classes.is_empty() || p.classes.len() > 10 {
            check.mistake("priority.classes", "list between one and ten classes, the most urgent first");
            return None;
        }
        let numbers: Option<Vec<i64>> = p.classes.iter().map(toml::Value::as_integer).collect();
        let conditions: Vec<String> = if let Some(numbers) = numbers {
            let falling = numbers.windows(2).all(|w| w[0] > w[1]);
            let rising = numbers.windows(2).all(|w| w[0] < w[1]);
            if !falling && !rising {
                check.mistake("priority.classes", "numbers must rise or fall from the most urgent to the least");
            }
            numbers.iter().map(|n| format!("{} {n}", if rising && numbers.len() > 1 { "<=" } else { ">=" })).collect()
        } else {
            p.classes.iter().map(|c| format!("= {}{}", literal(c.as_str().unwrap_or_default()), if column.labels.is_empty() { String::new() } else { format!("::{}", column.data_type) })).collect()
        };
        let case = |prefix: &str| {
            let mut sql = String::from("(case");
            for (i, condition) in conditions[..conditions.len() - 1].iter().enumerate() {
                sql += &format!(" when {prefix}{} {condition} then {i}", quote(&p.column));
            }
            sql + &format!(" else {} end)", conditions.len() - 1)
        };
        let bare = if conditions.len() == 1 { "0".to_owned() } else { case("") };
        let of = if conditions.len() == 1 { "0".to_owned() } else { case("q.") };
        // Without a head start a class is served before the next for good: a century is long enough.
        let head_start = match &p.head_start { Some(h) => check.duration("priority.head_start", h), None => "interval '100 years'".into() };
        Some(json!({"name": p.column, "column": quote(&p.column), "of": of, "bare": bare, "last": conditions.len() - 1, "head_start": head_start}))
    });

    // Owner.
    let owner = d.owner.as_ref().and_then(|o| {
        let column = check.column("owner.column", &o.column, &[])?;
        if created.is_none() && due.is_none() {
            check.mistake("an owned queue must know since when a row waits", "declare `created`, the column with the row's creation time");
        }
        let mut out =
            json!({"name": o.column, "column": quote(&o.column), "type": column.data_type, "table": null, "key": null, "user": null});
        if let Some((table_name, found)) = &owner_table {
            let Some(found) = found else {
                check.mistake(format!("owner.table = {table_name:?}: there is no such table"), "write schema.table as in psql");
                return None;
            };
            let mut owner_check = Check { table: found, mistakes: Vec::new() };
            let key = o.key.clone().or_else(|| if found.primary_key.len() == 1 { Some(found.primary_key[0].clone()) } else { None });
            match &key {
                Some(key) => {
                    if let Some(k) = owner_check.column("owner.key", key, &[]) {
                        if k.data_type != column.data_type
                            && !(INTEGERS.contains(&k.data_type.as_str()) && INTEGERS.contains(&column.data_type.as_str()))
                        {
                            owner_check.mistake(
                                format!(
                                    "owner.column = {:?} is {}, the key of {table_name} is {}",
                                    o.column, column.data_type, k.data_type
                                ),
                                "declare owner.key, the column it refers to",
                            );
                        }
                    }
                }
                None => owner_check.mistake(format!("{table_name} has no single-column primary key"), "declare owner.key"),
            }
            if let Some(user) = &o.user {
                owner_check.column("owner.user", user, &["uuid"]);
            }
            let shared = match &o.shared {
                Some(shared) => {
                    owner_check.column("owner.shared", shared, &["boolean"]);
                    // No row, or none yet said: not shared.
                    format!("coalesce(o.{}, false)", quote(shared))
                }
                None => format!("(o.{} is not null)", quote(key.as_deref().unwrap_or("id"))),
            };
            let open_after = match &o.open_after {
                Some(text) if is_duration(text) => format!("interval {}", literal(text)),
                Some(threshold) => {
                    let info = owner_check.column(
                        "owner.open_after",
                        threshold,
                        &["interval", "smallint", "integer", "bigint", "numeric", "double precision"],
                    );
                    let column = format!("o.{}", quote(threshold));
                    let unit = ["second", "minute", "hour", "day"].into_iter().find(|u| threshold.contains(u)).unwrap_or("minute");
                    match info {
                        Some(info) if info.data_type == "interval" => format!("coalesce({column}, interval '5 minutes')"),
                        // Numbers count what their name says, minutes where it says nothing.
                        _ => format!("coalesce({column} * interval '1 {unit}', interval '5 minutes')"),
                    }
                }
                None => "interval '5 minutes'".into(),
            };
            check.mistakes.append(&mut owner_check.mistakes);
            out["table"] = found.sql().into();
            out["key"] = quote(key.as_deref().unwrap_or("id")).into();
            out["user"] = o.user.as_deref().map_or(Value::Null, |u| quote(u).into());
            out["shared"] = shared.into();
            out["open_after"] = open_after.into();
        } else {
            for (key, value) in [("owner.shared", &o.shared), ("owner.user", &o.user), ("owner.key", &o.key)] {
                if value.is_some() {
                    check.mistake(format!("{key} names a column of the owner table, and there is none"), "declare owner.table as well");
                }
            }
            out["shared"] = "true".into();
            out["open_after"] = match &o.open_after {
                Some(text) => check.duration("owner.open_after", text),
                None => "interval '5 minutes'".into(),
            }
            .into();
        }
        Some(out)
    });

    // Columns for what happens to the work.
    let simple = |check: &mut Check<'_>, key: &str, column: &Option<String>, types: &[&str]| {
        column.as_ref().and_then(|c| {
            check.column(key, c, types).map(|i| {
                let numeric = INTEGERS.contains(&i.data_type.as_str())
                    || i.data_type.starts_with("numeric")
                    || i.data_type == "double precision"
                    || i.data_type == "real";
                json!({"name": c, "column": quote(c), "type": i.data_type, "numeric": numeric})
            })
        })
    };
    let result = simple(check, "result", &d.result, &["jsonb", "text", "character varying"]);
    let progress = simple(
        check,
        "progress",
        &d.progress,
        &["jsonb", "text", "character varying", "integer", "smallint", "numeric", "double precision", "real"],
    );
    let _payload = simple(check, "payload", &d.payload, &[]);
    let unique_column = simple(check, "unique", &d.unique, &[]);
    let path = |check: &mut Check<'_>, key: &str, place: &Option<String>, bare: &[&str]| {
        place.as_ref().and_then(|place| match place.split_once('.') {
            Some((column, rest)) => check.column(key, column, &["jsonb"]).map(|_| {
                json!({"column": quote(column), "type": "jsonb", "path": literal(&format!("{{{}}}", rest.replace('.', ","))), "name": column})
            }),
            None if bare.is_empty() => {
                check.mistake(format!("{key} = {place:?}"), "name a place inside a jsonb column, such as \"metadata.recovery_count\"");
                None
            }
            None => check.column(key, place, bare).map(|c| json!({"column": quote(place), "type": c.data_type, "path": null, "name": place})),
        })
    };
    let error = path(check, "error", &d.error, &["jsonb", "text", "character varying"]);
    let recovered = path(check, "recovered", &d.recovered, &[]);
    let mut holder = json!({"by": null, "at": null});
    if let Some(h) = &d.holder {
        holder["keep"] = h.keep.into();
        if let Some(by) = &h.by {
            holder["by"] = simple(check, "holder.by", &Some(by.clone()), &["uuid", "text", "character varying"]).unwrap_or_default();
        }
        if let Some(at) = &h.at {
            holder["at"] = time(check, "holder.at", at).unwrap_or_default();
        }
    }

    // Durations and retries.
    let per_kind = |check: &mut Check<'_>, key: &str, value: &Option<PerKind>, default: &str, row: &str| -> String {
        match value {
            None => format!("interval '{default}'"),
            Some(PerKind::All(text)) => check.duration(key, text),
            Some(PerKind::ByKind(by_kind)) => {
                let Some(kind) = &kind else {
                    check.mistake(
                        format!("{key} has a duration per kind, and no kind is declared"),
                        "declare `kind`, or write a single duration",
                    );
                    return String::new();
                };
                let otherwise = match by_kind.get("default") {
                    Some(text) => check.duration(key, text),
                    None => format!("interval '{default}'"),
                };
                let mut sql = format!("(case {}", kind[row].as_str().unwrap_or_default());
                for (k, text) in by_kind.iter().filter(|(k, _)| *k != "default") {
                    let duration = check.duration(&format!("{key}.{k}"), text);
                    sql += &format!(" when {} then {duration}", literal(k));
                }
                if by_kind.len() == usize::from(by_kind.contains_key("default")) {
                    otherwise
                } else {
                    sql + &format!(" else {otherwise} end)")
                }
            }
        }
    };
    for (suffix, row) in [("", "of"), ("_of_row", "of_row"), ("_new", "of_new")] {
        let before = check.mistakes.len();
        let hold = per_kind(check, "hold", &d.hold, "5 minutes", row);
        let deadline = per_kind(check, "deadline", &d.deadline, "1 hour", row);
        if !suffix.is_empty() {
            // The same text three times over; its mistakes are told once.
            check.mistakes.truncate(before);
        }
        context.insert(
            match suffix {
                "" => "hold",
                "_of_row" => "hold_of_row",
                _ => "hold_new",
            },
            hold.into(),
        );
        context.insert(
            match suffix {
                "" => "deadline",
                "_of_row" => "deadline_of_row",
                _ => "deadline_new",
            },
            deadline.into(),
        );
    }
    let retry = &d.retry;
    let first = check.duration("retry.backoff", &retry.backoff[0]);
    let cap = check.duration("retry.backoff", &retry.backoff[1]);
    context.insert("retry", json!({"attempts": retry.attempts, "first": first, "cap": cap}));
    let within = retry.within.as_ref().map(|w| check.duration("retry.within", w));
    if within.is_some() && created.is_none() {
        check.mistake("retry.within counts from the row's creation", "declare `created`");
    }
    let may_retry = |row: &str| {
        let mut sql = format!("v_attempts < {}", retry.attempts);
        if let (Some(within), Some(created)) = (&within, &created) {
            let column = format!("{row}.{}", created["column"].as_str().unwrap_or_default());
            let at = if created["type"] == "timestamp without time zone" {
                format!("({column} at time zone {})", literal(&zone))
            } else {
                column
            };
            sql += &format!(" and coalesce({at}, v_now) + {within} > v_now");
        }
        format!("({sql})")
    };
    context.insert("may_retry", may_retry("v_row").into());
    context.insert("may_retry_old", may_retry("old").into());
    let retain = d.retain.as_ref().map(|r| check.duration("retain", r));
    if retain.is_some() && finished.is_none() {
        check.mistake("retain needs to know when work ended", "declare `finished`, a timestamp column");
    }

    // Dead letters: the column that refers to the table gets the key, a reason column the reason, equal names are copied.
    let dead = dead_table.as_ref().and_then(|(dead_name, found)| {
        let Some(found) = found else {
            check.mistake(format!("dead = {dead_name:?}: there is no such table"), "create it first, or leave `dead` out");
            return None;
        };
        let reference = dead_reference.or_else(|| found.columns.keys().find(|c| c.starts_with("original_")).cloned());
        let Some(reference) = reference else {
            check.mistake(
                format!("dead = {dead_name:?}: no column refers to {}", table.sql()),
                "add one: a foreign key, or a column named original_…_id",
            );
            return None;
        };
        let mut names = vec![quote(&reference)];
        let mut values = vec![format!("p_row.{}", quote(key.as_deref().unwrap_or("id")))];
        for (column, info) in &found.columns {
            if *column == reference
                || found.primary_key.contains(column)
                || Some(column.as_str()) == key.as_deref()
                || column.starts_with("created")
            {
                continue;
            }
            if column == "reason" || column.ends_with("_reason") {
                names.push(quote(column));
                values.push("p_reason".into());
            } else if table.columns.get(column).is_some_and(|c| c.data_type == info.data_type) {
                names.push(quote(column));
                values.push(format!("p_row.{}", quote(column)));
            }
        }
        let pk_needs_value = found.primary_key.iter().any(|c| !found.columns[c].has_default);
        if pk_needs_value && found.primary_key.len() == 1 && found.columns[&found.primary_key[0]].data_type == "uuid" {
            names.push(quote(&found.primary_key[0]));
            values.push("gen_random_uuid()".into());
        } else if pk_needs_value {
            check.mistake(format!("dead = {dead_name:?}: its key has no default"), "give it one, such as gen_random_uuid()");
        }
        Some(json!({"table": found.sql(), "columns": names.join(", "), "values": values.join(", ")}))
    });

    let status_ctx = context.get("status")?.clone();
    let key_ctx = context.get("key")?.clone();
    let (key, key_type) = (key?, key_ctx["type"].as_str()?.to_owned());
    let s = |k: &str| status_ctx[k].as_str().unwrap_or_default().to_owned();
    let c = |k: &str| col.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();

    let claimable = |a: &str| format!("{a}{} in ({}) and {a}{} is not null", s("column"), s("claimable"), c("due"));
    context.insert("claimable", claimable("q.").into());
    context.insert("claimable_in_text", claimable("q.").replace('\'', "''").replace('%', "%%").into());
    context.insert(
        "lost_now",
        format!("(case when q.{} in ({}) and q.{} >= 1 then 1 else 0 end)", s("column"), s("held"), c("started")).into(),
    );
    if let Some(r) = &recovered {
        context.insert(
            "recovered_value",
            format!("jsonb_set(coalesce(q.{0}, '{{}}'), {1}, to_jsonb(q.{2} + 1))", r["column"].as_str()?, r["path"].as_str()?, c("lost"))
                .into(),
        );
    }
    let ask = retry.lost == Lost::Ask;
    let poisoned = format!("when v_lost >= {} then format('lost %s leases', v_lost)", retry.lost_leases);
    context.insert("poison_reason", if ask {
        format!("case when v_row.{0} in ({1}) and v_row.{2} = 2 then 'outcome unknown: the lease ran out after the work had begun' {poisoned} end", s("column"), s("held"), c("started"))
    } else {
        format!("case {poisoned} end")
    }.into());
    context.insert(
        "poison_category",
        if ask {
            "case when v_row.{st} = 2 then 'OutcomeUnknown' else 'Poison' end".replace("{st}", &c("started"))
        } else {
            "'Poison'".into()
        }
        .into(),
    );

    // Unique keys cover waiting rows only: a running row does not block its successor.
    if let Some(u) = &unique_column {
        let column = u["column"].as_str()?;
        let predicate = format!("{} in ({}) and {} is not null and {column} is not null", s("column"), s("waiting"), c("due"));
        let target = match &tenant {
            Some((t, _)) => format!("{}, {column}", quote(t)),
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

    let own_columns: Vec<String> = columns
        .iter()
        .map(|c| c.name.clone())
        .filter(|n| {
            Some(n.as_str()) != col_names.get("due").and_then(Value::as_str)
                && Some(n.as_str()) != col_names.get("open").and_then(Value::as_str)
        })
        .collect();
    context.insert("engine_names", own_columns.iter().map(|n| literal(n)).collect::<Vec<_>>().join(", ").into());
    let mut unique_names = vec![literal(&key)];
    unique_names.extend(d.unique.iter().map(|u| literal(u)));
    unique_names.extend(d.tenant.iter().map(|t| literal(t)));
    context.insert("unique_names", unique_names.join(", ").into());

    // Insert triggers are spared where a plain insert needs nothing: no owner to ask, and the defaults already right.
    let spare = if d.owner.is_none()
        && d.due.is_none()
        && created.as_ref().is_none_or(|c| c["name"] == "created_at" && table.schema == "gleaner")
    {
        format!(
            " and (new.{} is distinct from {} or new.{} is null or new.{} is distinct from 0 or new.{} is distinct from 0 or new.{} is distinct from 0 or new.{} is distinct from 0)",
            s("column"),
            s("ready"),
            c("due"),
            c("lease"),
            c("attempts"),
            c("lost"),
            c("started")
        )
    } else {
        String::new()
    };
    context.insert("insert_needs_adapter", spare.into());
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

    let table_sql = table.sql();
    context.insert("table_literal", literal(&table_sql).into());
    context.insert("table_in_text", table_sql.replace('\'', "''").replace('%', "%%").into());
    context.insert("table", table_sql.clone().into());
    context.insert("name", name.clone().into());
    context.insert("search_path", search_path.into());
    context.insert("notify", d.notify.into());
    context.insert("retain", retain.map_or(Value::Null, Value::from));
    for trigger in ["insert", "update", "notify"] {
        context.insert(
            match trigger {
                "insert" => "trigger_insert",
                "update" => "trigger_update",
                _ => "trigger_notify",
            },
            // Named to come after the table's own triggers: those may still set a status for the adapter to see.
            format!("zz_gleaner_{trigger}_{name}").into(),
        );
    }

    let indexes = indexes(
        &name,
        table,
        &IndexParts {
            tenant: tenant.as_ref().map(|(t, _)| quote(t)),
            key: quote(&key),
            kind: kind.as_ref().and_then(|k| k["bare"].as_str()).map(str::to_owned),
            priority: priority.as_ref().filter(|p| p["last"].as_u64() > Some(0)).and_then(|p| p["bare"].as_str()).map(str::to_owned),
            owner: owner.as_ref().and_then(|o| o["column"].as_str()).map(str::to_owned),
            due: c("due"),
            open: c("open"),
            claimable: claimable(""),
            unique: context["unique"]["target"]
                .as_str()
                .map(|t| (t.to_owned(), context["unique"]["predicate"].as_str().unwrap_or_default().to_owned())),
            finished: finished.as_ref().filter(|_| d.retain.is_some()).and_then(|f| f["column"].as_str()).map(str::to_owned),
        },
    );

    context.insert("col", Value::Object(col));
    context.insert("col_names", Value::Object(col_names));
    context.insert("created", created.unwrap_or_default());
    context.insert("due", due.unwrap_or_default());
    context.insert("finished", finished.unwrap_or_default());
    context.insert("kind", kind.unwrap_or_default());
    context.insert("priority", priority.unwrap_or_default());
    context.insert("owner", owner.unwrap_or_default());
    context.insert("result", result.unwrap_or_default());
    context.insert("progress", progress.unwrap_or_default());
    context.insert("error", error.unwrap_or_default());
    context.insert("recovered", recovered.unwrap_or_default());
    context.insert("holder", holder);
    context.insert("dead", dead.unwrap_or_default());

    Some(Plan { name, declaration: d.clone(), table: table.clone(), key, key_type, columns, indexes, missing_labels, context })
}

struct IndexParts {
    tenant: Option<String>,
    key: String,
    kind: Option<String>,
    priority: Option<String>,
    owner: Option<String>,
    due: String,
    open: String,
    claimable: String,
    unique: Option<(String, String)>,
    finished: Option<String>,
}

/// One index per probe, and exactly one that can match it: a second candidate is what the planner falls for.
fn indexes(queue: &str, table: &Table, p: &IndexParts) -> Vec<Index> {
    let list = |parts: &[Option<&str>]| parts.iter().flatten().copied().collect::<Vec<_>>().join(", ");
    let on = table.sql();
    let named = |suffix: &str| {
        let mut base = format!("gleaner_{queue}");
        base.truncate(63 - suffix.len() - 1);
        format!("{base}_{suffix}")
    };
    let (tenant, kind, priority) = (p.tenant.as_deref(), p.kind.as_deref(), p.priority.as_deref());
    let plain = |suffix: &str, columns: String, predicate: &str| Index {
        name: named(suffix),
        definition: format!("on {on} ({columns}) where {predicate}"),
        unique: false,
    };
    let mut out = Vec::new();
    if let Some(owner) = p.owner.as_deref() {
        out.push(plain(
            "own",
            list(&[tenant, Some(owner), kind, priority, Some(&p.due), Some(&p.key)]),
            &format!("{} and {owner} is not null", p.claimable),
        ));
        out.push(plain(
            "global",
            list(&[tenant, kind, priority, Some(&p.due), Some(&p.key)]),
            &format!("{} and {owner} is null", p.claimable),
        ));
        out.push(plain(
            "stale",
            list(&[tenant, kind, priority, Some(&p.open), Some(&p.key)]),
            &format!("{} and {owner} is not null and {} is not null", p.claimable, p.open),
        ));
    } else {
        out.push(plain("global", list(&[tenant, kind, priority, Some(&p.due), Some(&p.key)]), &p.claimable));
    }
    if let Some((target, predicate)) = &p.unique {
        out.push(Index { name: named("unique"), definition: format!("on {on} ({target}) where {predicate}"), unique: true });
    }
    if let Some(finished) = &p.finished {
        // Finished rows lie in the order they ended in: a summary per block range is enough to find the old ones.
        out.push(Index {
            name: named("finished"),
            definition: format!("on {on} using brin ({finished}) with (autosummarize = on)"),
            unique: false,
        });
    }
    out
}

/// The column of `dead` with a foreign key to `table`.
async fn reference_to(client: &impl GenericClient, dead: &Table, table: &Table) -> Result<Option<String>> {
    use tokio_postgres::types::Type;
    let rows = client
        .query_typed(
            "select a.attname::text from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
             where c.contype = 'f' and c.conrelid = to_regclass($1) and c.confrelid = to_regclass($2) and cardinality(c.conkey) = 1",
            &[(&dead.sql(), Type::TEXT), (&table.sql(), Type::TEXT)],
        )
        .await
        .map_err(Error::doing("look for the dead letter table's foreign key"))?;
    Ok(rows.first().map(|r| r.get(0)))
}

/// What the rendered functions resolve unqualified names against: the table's own triggers inherit it.
fn search_path(table: &Table) -> String {
    let mut path = vec!["pg_catalog".to_owned()];
    for schema in [table.schema.as_str(), "public"] {
        if !path.contains(&quote(schema)) {
            path.push(quote(schema));
        }
    }
    path.push("pg_temp".into());
    path.join(", ")
}

/// The known name nearest to `name`, if any is near.
fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known.map(|k| (distance(name, k), k)).min().filter(|(d, k)| *d <= 1 + name.len().max(k.len()) / 4).map(|(_, k)| k)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut previous = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = previous + usize::from(ca != *cb);
            previous = row[j + 1];
            row[j + 1] = substituted.min(previous + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
