//! Reading the catalogue, in one round trip.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde::de::DeserializeOwned;
use tokio_postgres::types::Type as Oid;
use tokio_postgres::{Client, Row};

use super::{Catalogue, Function, Relation, Schema};
use crate::wire_error::WireError;

const RELATIONS: &str = include_str!("relations.sql");
const FUNCTIONS: &str = include_str!("functions.sql");
const TYPES: &str = include_str!("types.sql");

pub(super) async fn load(client: &Client, schemas: &[String]) -> Result<Catalogue, WireError> {
    let read_at = Instant::now();
    let parameters: &[(&(dyn tokio_postgres::types::ToSql + Sync), Oid)] = &[(&schemas, Oid::TEXT_ARRAY)];
    let (relations, functions, types) = tokio::join!(
        client.query_typed(RELATIONS, parameters),
        client.query_typed(FUNCTIONS, parameters),
        client.query_typed(TYPES, parameters),
    );
    let refused = |error| WireError::from_postgres(&error, false);
    let mut by_name: HashMap<String, Schema> = schemas.iter().map(|name| (name.clone(), Schema::default())).collect();
    for relation in parse::<Relation>(&relations.map_err(refused)?)? {
        let schema = by_name.entry(relation.schema.clone()).or_default();
        schema.relations.insert(relation.name.clone(), Arc::new(relation));
    }
    for function in parse::<Function>(&functions.map_err(refused)?)? {
        let schema = by_name.entry(function.schema.clone()).or_default();
        schema.functions.entry(function.name.clone()).or_default().push(Arc::new(function));
    }
    let types = types.map_err(refused)?.iter().map(|row| (row.get(0), row.get(1))).collect();
    Ok(Catalogue { schemas: by_name, types, read_at })
}

fn parse<T: DeserializeOwned>(rows: &[Row]) -> Result<Vec<T>, WireError> {
    let read = |row: &Row| serde_json::from_str(row.get(0));
    rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| {
        tracing::error!(%error, "the catalogue could not be understood");
        WireError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "PGRST002", "Could not read the database's catalogue")
    })
}
