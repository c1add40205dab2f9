//! Converts the arguments to the columns of a row.

use anyhow::{Result, bail};
use gleaner::Error;
use gleaner::view::View;
use serde_json::{Map, Value};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::{Args, Meaning, column, parse};
use crate::target::seconds;

/// How JSON becomes an item, and the columns that are added to every item.
#[derive(Debug)]
pub(super) struct Shape {
    /// The column that a JSON value goes into; `None` when its keys are columns.
    payload: Option<String>,
    common: Map<String, Value>,
    /// The column that makes items unique, if there is one.
    pub unique: Option<String>,
}

impl Shape {
    pub(super) async fn of(client: &Client, queue: &str, args: &Args) -> Result<Self> {
        let view = View::of(client, queue).await?;
        let declaration = &view.plan().declaration;
        let built_in = view.plan().table.schema == "gleaner" && view.plan().table.name == "jobs";
        let meaning = args.meaning.unwrap_or(if built_in { Meaning::Payload } else { Meaning::Columns });
        let payload = match (meaning, &declaration.payload) {
            (Meaning::Columns, _) => None,
            (Meaning::Payload, Some(column)) => Some(column.clone()),
            (Meaning::Payload, None) => bail!("queue {queue} declares no payload column: give an object whose keys are columns"),
        };
        let mut common = Map::new();
        if let Some(kind) = &args.kind {
            let Some(column) = &declaration.kind else { bail!("queue {queue} has no kinds: leave --kind out") };
            common.insert(column.clone(), kind.clone().into());
        }
        if let Some(priority) = &args.priority {
            let Some(declared) = &declaration.priority else { bail!("queue {queue} has no priorities: leave --priority out") };
            common.insert(declared.column.clone(), priority.clone().into());
        }
        if let Some(delay) = &args.delay {
            // By the database's clock, because ours may be wrong.
            let seconds = seconds(client, delay).await?;
            let rows = client
                .query_typed("select to_jsonb(clock_timestamp() + $1 * interval '1 second')", &[(&seconds, Type::FLOAT8)])
                .await
                .map_err(Error::doing("read the clock"))?;
            common.insert(view.due_column().to_owned(), rows[0].get(0));
        }
        Ok(Self { payload, common, unique: declaration.unique.clone() })
    }

    /// The items in the arguments: one per JSON value, with the given columns added to all of them. Columns alone make one item.
    pub(super) fn items(&self, typed: &[String]) -> Result<Vec<Value>> {
        let mut columns = Map::new();
        let mut values = Vec::new();
        for text in typed {
            match column(text) {
                Some((name, value)) => drop(columns.insert(name.to_owned(), value)),
                None => values.push(parse(text)?),
            }
        }
        if values.is_empty() && columns.is_empty() && self.common.is_empty() {
            bail!("nothing to enqueue: give JSON, COLUMN=VALUE, --kind or --file (`gleaner enqueue --help` has examples)");
        }
        if self.payload.is_none() {
            values = values.into_iter().flat_map(|value| if let Value::Array(many) = value { many } else { vec![value] }).collect();
        }
        let mut items = values.into_iter().map(|value| self.item(value)).collect::<Result<Vec<_>>>()?;
        if items.is_empty() {
            items.push(self.common.clone().into());
        }
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.extend(columns.clone());
        }
        Ok(items)
    }

    /// One JSON value as an item.
    pub(super) fn item(&self, value: Value) -> Result<Value> {
        let mut item = match (&self.payload, value) {
            (Some(column), value) => Map::from_iter([(column.clone(), value)]),
            (None, Value::Object(columns)) => columns,
            (None, other) => bail!("{other} is not an object whose keys are columns"),
        };
        for (name, value) in &self.common {
            item.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Ok(item.into())
    }
}
