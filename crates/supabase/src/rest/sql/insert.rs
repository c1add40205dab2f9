use gleaner_http::WireError;
use http::StatusCode;

use super::read::NO_NUMBER;
use super::{Compiler, Scope, Statement, typed, written_column};
use crate::rest::body::Rows;
use crate::rest::catalogue::{Column, Relation};

/// What to do with a row that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upsert {
    Merge,
    Ignore,
}

/// Counts inserted rows without reading them, which would need the right to read: each row adds one when it is inserted, and one
/// that was only updated subtracts it again.
const COUNTED: &str = "pg_catalog.set_config('gleaner.inserted', \
    (coalesce(nullif(pg_catalog.current_setting('gleaner.inserted', true), ''), '0')::pg_catalog.int8 + 1)::pg_catalog.text, true) is not null";
const NOT_INSERTED: &str = "pg_catalog.set_config('gleaner.inserted', \
    (pg_catalog.current_setting('gleaner.inserted', true)::pg_catalog.int8 - 1)::pg_catalog.text, true) is not null";
const INSERTED: &str = "coalesce(nullif(pg_catalog.current_setting('gleaner.inserted', true), ''), '0')::pg_catalog.int8";

/// How rows are inserted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inserting {
    pub upsert: Option<Upsert>,
    /// Keys that a row lacks get the column's default.
    pub missing_default: bool,
    pub show: bool,
    pub count: bool,
}

/// The body as a source of rows.
#[derive(Debug)]
pub(super) struct Body {
    /// An expression for each column.
    pub values: Vec<String>,
    pub from: String,
}

impl<'a> Compiler<'a> {
    /// Inserts the rows of the body. `None` when there are none.
    pub(crate) fn insert(mut self, relation: &'a Relation, body: Rows, how: Inserting) -> Result<Option<Statement>, WireError> {
        let names = self.query.columns.as_ref().unwrap_or(&body.keys);
        let columns = names.iter().map(|name| written_column(relation, name)).collect::<Result<Vec<_>, _>>()?;
        let mut insert = format!("insert into {} as t0 ", relation.sql);
        let mut inserted = NO_NUMBER;
        match (columns.is_empty(), body.count) {
            (true, 0) => return Ok(None),
            (true, 1) => insert.push_str("default values"),
            (true, _) => {
                let message = "Rows without any column can only be inserted one at a time";
                return Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST102", message));
            }
            (false, _) => {
                let conflict = self.conflict(relation, &columns, how.upsert)?;
                let counted = if how.upsert == Some(Upsert::Merge) && !conflict.is_empty() {
                    inserted = INSERTED;
                    format!(" where {COUNTED}")
                } else {
                    String::new()
                };
                let list: Vec<_> = columns.iter().map(|column| column.sql.as_str()).collect();
                let rows = self.rows(&columns, body, how.missing_default);
                let (list, values) = (list.join(", "), rows.values.join(", "));
                insert.push_str(&format!("({list}) select {values} from {}{counted}{conflict}", rows.from));
            }
        }
        self.write(relation, &insert, how.show, how.count, inserted).map(Some)
    }

    /// The rows of the body, and the value of each column in them.
    pub(super) fn rows(&mut self, columns: &[&Column], body: Rows, missing_default: bool) -> Body {
        let definition = typed(columns.iter().copied());
        let (take_apart, is_array) = (body.taken_apart_by(), body.is_array);
        let place = self.values.text(body.text);
        if !missing_default {
            let values = columns.iter().map(|column| format!("body.{}", column.sql)).collect();
            return Body { values, from: format!("{take_apart}({place}::pg_catalog.json) as body({definition})") };
        }
        let value = |column: &&Column| {
            let name = self.values.text(&column.name);
            let default = column.default.as_deref().unwrap_or("null");
            format!("case when pg_catalog.jsonb_exists(element.value, {name}::pg_catalog.text) then body.{} else {default} end", column.sql)
        };
        let values = columns.iter().map(value).collect();
        let elements = if is_array {
            format!("pg_catalog.jsonb_array_elements({place}::pg_catalog.jsonb)")
        } else {
            format!("(select {place}::pg_catalog.jsonb)")
        };
        Body {
            values,
            from: format!("{elements} as element(value), lateral pg_catalog.jsonb_to_record(element.value) as body({definition})"),
        }
    }

    /// ` on conflict …`, or nothing when it is not asked for or there is nothing to conflict with.
    fn conflict(&self, relation: &Relation, columns: &[&Column], upsert: Option<Upsert>) -> Result<String, WireError> {
        let names = self.query.on_conflict.as_ref().unwrap_or(&relation.primary_key);
        let (Some(upsert), false) = (upsert, names.is_empty()) else { return Ok(String::new()) };
        let scope = Scope::of(relation);
        let keys = names.iter().map(|name| scope.column(name)).collect::<Result<Vec<_>, _>>()?;
        let target: Vec<_> = keys.iter().map(|key| key.sql.as_str()).collect();
        let target = target.join(", ");
        if upsert == Upsert::Ignore {
            return Ok(format!(" on conflict ({target}) do nothing"));
        }
        let others: Vec<_> = columns.iter().filter(|column| !names.contains(&column.name)).collect();
        // With nothing else to change the row must still be returned, so it is updated to itself.
        let changed = if others.is_empty() { columns.iter().collect() } else { others };
        let set: Vec<_> = changed.iter().map(|column| format!("{0} = excluded.{0}", column.sql)).collect();
        Ok(format!(" on conflict ({target}) do update set {} where {NOT_INSERTED}", set.join(", ")))
    }
}
