//! The places where assistants can work: a database, or a server in front of one.

mod direct;
mod wire;

use gleaner::declaration::Declaration;
use gleaner::{Error, Result};
use serde_json::{Map, Value};

pub use self::direct::DirectBackend;
pub use self::wire::WireBackend;

/// A task from outside as an item: only kind and payload, and no other column of the table.
fn item(queue: &str, declared: &Declaration, kind: Option<&str>, payload: &Value) -> Result<Value> {
    let unsupported = |what: &str| Err(Error::Unsupported { queue: queue.to_owned(), what: what.to_owned() });
    let mut item = Map::new();
    match (&declared.kind, kind) {
        (Some(column), Some(kind)) => drop(item.insert(column.clone(), kind.into())),
        (None, Some(_)) => return unsupported("has no kinds: leave the kind out"),
        (_, None) => {}
    }
    let Some(column) = &declared.payload else { return unsupported("declares no payload column and takes no tasks from outside") };
    item.insert(column.clone(), payload.clone());
    Ok(Value::Object(item))
}
