//! The queues of this database.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::declaration::Declaration;
use crate::error::{Error, Result};

/// An attached queue.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The queue's name.
    pub name: String,
    /// Its table, quoted and schema-qualified.
    pub table: String,
    /// What its author wrote.
    pub declaration: Declaration,
}

/// Every attached queue, by name.
pub async fn list(client: &impl GenericClient) -> Result<Vec<Entry>> {
    let rows = client
        .query_typed("select name, table_name, declaration from gleaner.queue order by name", &[])
        .await
        .map_err(Error::doing("read the registry (is the database migrated? `gleaner migrate`)"))?;
    let mut entries = Vec::new();
    for row in &rows {
        let name: String = row.get(0);
        match serde_json::from_value(row.get(2)) {
            Ok(declaration) => entries.push(Entry { name, table: row.get(1), declaration }),
            // An unusable queue must not hide the others; `survey` reports it.
            Err(error) => tracing::warn!(queue = name, %error, "the stored declaration is unreadable"),
        }
    }
    Ok(entries)
}

/// A queue and whether it can be used.
#[derive(Debug, Clone)]
pub struct Surveyed {
    /// The queue's name.
    pub name: String,
    /// Its table, quoted and schema-qualified.
    pub table: String,
    /// None when it cannot be read.
    pub declaration: Option<Declaration>,
    /// Why it cannot be used, and what to do.
    pub broken: Option<String>,
}

/// Every attached queue, including those whose table, columns or acts are missing. One query for all of them.
pub async fn survey(client: &impl GenericClient) -> Result<Vec<Surveyed>> {
    let rows =
        client.query_typed(SURVEY, &[]).await.map_err(Error::doing("read the registry (is the database migrated? `gleaner migrate`)"))?;
    let survey = |row: &tokio_postgres::Row| {
        let (name, table): (String, String) = (row.get(0), row.get(1));
        let (has_table, lost, has_acts): (bool, Vec<String>, bool) = (row.get(3), row.get(4), row.get(5));
        let declaration = serde_json::from_value::<Declaration>(row.get(2));
        let broken = if let Err(error) = &declaration {
            Some(format!("its stored declaration cannot be read ({error}); run `gleaner migrate`, or attach it again"))
        } else if !has_table {
            Some(format!("its table {table} is gone; put it back, or run `gleaner detach {name}`"))
        } else if !lost.is_empty() {
            let columns = lost.join(", ");
            Some(format!(
                "its table {table} has no column {columns} any more; put it back, or change the declaration and run `gleaner attach`"
            ))
        } else {
            (!has_acts).then(|| "its acts are gone; run `gleaner migrate`".to_owned())
        };
        Surveyed { name, table, declaration: declaration.ok(), broken }
    };
    Ok(rows.iter().map(survey).collect())
}

/// Missing columns, both declared ones and those the engine added. `error` may be a path inside a column.
const SURVEY: &str = "
    select q.name, q.table_name, q.declaration, t.oid is not null,
           case when t.oid is null then '{}'::text[] else array(
               select quote_ident(c) from (
                   select jsonb_array_elements_text(q.added -> 'engine')
                   union select q.declaration ->> d from unnest(array['key', 'tenant', 'kind', 'unique', 'result', 'progress', 'attempts', 'finished', 'due', 'created']) d
                   union select q.declaration #>> p.path::text[] from (values ('{status,column}'), ('{owner,column}'), ('{priority,column}'), ('{holder,by}'), ('{holder,at}')) p (path)
                   union select split_part(q.declaration ->> 'error', '.', 1)
               ) wanted (c)
               where c <> '' and not exists (select from pg_attribute a where a.attrelid = t.oid and a.attname = c and a.attnum > 0 and not a.attisdropped)
               order by 1) end,
           exists (select from pg_proc p where p.pronamespace = 'gleaner'::regnamespace and p.proname = 'claim_' || q.name)
    from gleaner.queue q left join pg_class t on t.oid = to_regclass(q.table_name)
    order by q.name";

/// The queue of that name.
pub async fn find(client: &impl GenericClient, name: &str) -> Result<Entry> {
    let rows = client
        .query_typed("select name, table_name, declaration from gleaner.queue where name = $1", &[(&name, Type::TEXT)])
        .await
        .map_err(Error::doing("read the registry (is the database migrated? `gleaner migrate`)"))?;
    let Some(row) = rows.first() else { return Err(unknown(client, name).await?) };
    let declaration =
        serde_json::from_value(row.get(2)).map_err(|e| Error::Other(format!("the stored declaration of {name} is unreadable: {e}")))?;
    Ok(Entry { name: row.get(0), table: row.get(1), declaration })
}

/// The SQL of every queue, by name.
#[cfg(feature = "schema")]
pub(crate) async fn rendered(client: &impl GenericClient) -> Result<std::collections::BTreeMap<String, (String, Vec<String>)>> {
    let rows =
        client.query_typed("select to_regclass('gleaner.queue') is not null", &[]).await.map_err(Error::doing("look for the registry"))?;
    if !rows[0].get::<_, bool>(0) {
        return Ok(std::collections::BTreeMap::new());
    }
    let sql = "select name, rendered, array(select jsonb_array_elements_text(added -> 'functions')) from gleaner.queue";
    let rows = client.query_typed(sql, &[]).await.map_err(Error::doing("read the registry"))?;
    Ok(rows.iter().map(|r| (r.get(0), (r.get(1), r.get(2)))).collect())
}

/// The declaration of `name` as its author wrote it.
pub async fn source(client: &impl GenericClient, name: &str) -> Result<String> {
    let rows = client
        .query_typed("select source from gleaner.queue where name = $1", &[(&name, Type::TEXT)])
        .await
        .map_err(Error::doing("read the registry"))?;
    match rows.first() {
        Some(row) => Ok(row.get(0)),
        None => Err(unknown(client, name).await?),
    }
}

pub(crate) async fn unknown(client: &impl GenericClient, name: &str) -> Result<Error> {
    let known = list(client).await?.into_iter().map(|e| e.name).collect();
    Ok(Error::UnknownQueue { name: name.into(), known })
}
