//! Reads the catalogue, in one round trip.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use gleaner_http::WireError;
use serde::de::DeserializeOwned;
use tokio_postgres::types::Type as Oid;
use tokio_postgres::{Client, Row};

use super::compute::compute;
use super::origin::Origins;
use super::relate::relate;
use super::{Catalogue, Column, Function, Relation, Returns, Schema, Type};

const RELATIONS: &str = include_str!("relations.sql");
const KEYS: &str = include_str!("keys.sql");
const VIEWS: &str = include_str!("views.sql");
const FUNCTIONS: &str = include_str!("functions.sql");
const TYPES: &str = include_str!("types.sql");

pub(super) async fn load(client: &Client, schemas: &[String]) -> Result<Catalogue, WireError> {
    let read_at = Instant::now();
    let parameters: &[(&(dyn tokio_postgres::types::ToSql + Sync), Oid)] = &[(&schemas, Oid::TEXT_ARRAY)];
    let (relations, keys, views, functions, types) = tokio::join!(
        biased;
        client.query_typed(RELATIONS, parameters),
        client.query_typed(KEYS, &[]),
        client.query_typed(VIEWS, &[]),
        client.query_typed(FUNCTIONS, parameters),
        client.query_typed(TYPES, parameters),
    );
    let refused = |error| WireError::from_postgres(&error, false);
    let (kinds, types) = read_types(&types.map_err(refused)?);
    let mut by_name: HashMap<String, Schema> = schemas.iter().map(|name| (name.clone(), Schema::default())).collect();
    let mut relations = parse::<Relation>(&relations.map_err(refused)?)?;
    relate(&mut relations, parse(&keys.map_err(refused)?)?, &read_origins(&views.map_err(refused)?));
    let functions = parse::<Function>(&functions.map_err(refused)?)?;
    compute(&mut relations, &functions, &kinds);
    for mut relation in relations {
        describe(&mut relation.columns, &kinds);
        let schema = by_name.entry(relation.schema.clone()).or_default();
        schema.relations.insert(relation.name.clone(), Arc::new(relation));
    }
    for mut function in functions {
        for argument in &mut function.arguments {
            argument.kind = kinds.get(&argument.oid).cloned().unwrap_or_default();
        }
        if let Returns::Rows { columns, .. } = &mut function.returns {
            describe(columns, &kinds);
        }
        let schema = by_name.entry(function.schema.clone()).or_default();
        schema.functions.entry(function.name.clone()).or_default().push(Arc::new(function));
    }
    Ok(Catalogue { schemas: by_name, types, read_at })
}

fn read_origins(views: &[Row]) -> Origins {
    Origins::read(views.iter().map(|row| (u32::try_from(row.get::<_, i64>(0)).unwrap_or_default(), row.get(1))))
}

/// Types by oid, and by the names a client may use.
fn read_types(rows: &[Row]) -> (HashMap<u32, Type>, HashMap<String, String>) {
    let mut kinds = HashMap::with_capacity(rows.len());
    let mut names = HashMap::new();
    for row in rows {
        let kind = Type { sql: row.get(1), array: row.get(2) };
        names.extend(row.get::<_, Vec<String>>(3).into_iter().map(|name| (name, kind.sql.clone())));
        kinds.insert(u32::try_from(row.get::<_, i64>(0)).unwrap_or_default(), kind);
    }
    names.extend(SQL_NAMES.map(|(name, sql)| (name.to_owned(), sql.to_owned())));
    (kinds, names)
}

/// Names that the grammar of SQL has for types, besides those of the catalogue.
const SQL_NAMES: [(&str, &str); 9] = [
    ("int", "pg_catalog.int4"),
    ("decimal", "pg_catalog.numeric"),
    ("dec", "pg_catalog.numeric"),
    ("float", "pg_catalog.float8"),
    ("char", "pg_catalog.bpchar"),
    ("nchar", "pg_catalog.bpchar"),
    ("national character", "pg_catalog.bpchar"),
    ("char varying", "pg_catalog.\"varchar\""),
    ("national character varying", "pg_catalog.\"varchar\""),
];

/// Types are read last, so that those of every column are included.
fn describe(columns: &mut [Column], kinds: &HashMap<u32, Type>) {
    for column in columns {
        column.kind = kinds.get(&column.oid).cloned().unwrap_or_default();
    }
}

fn parse<T: DeserializeOwned>(rows: &[Row]) -> Result<Vec<T>, WireError> {
    let read = |row: &Row| serde_json::from_str(row.get(0));
    rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| {
        tracing::error!(%error, "the catalogue could not be understood");
        WireError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "PGRST002", "Could not read the database's catalogue")
    })
}
