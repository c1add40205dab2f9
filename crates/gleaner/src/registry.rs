//! The queues of this database.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::declaration::Declaration;
use crate::error::{Error, Result};

/// An attached queue.
#[derive(Debug, Clone)]
pub struct Entry {
    pub name: String,
    pub table: String,
    pub declaration: Declaration,
}

/// Every attached queue, by name.
pub async fn list(client: &impl GenericClient) -> Result<Vec<Entry>> {
    let rows = client
        .query_typed("select name, table_name, declaration from gleaner.queue order by name", &[])
        .await
        .map_err(Error::doing("read the registry (is the database migrated? `gleaner migrate`)"))?;
    rows.iter()
        .map(|row| {
            let name: String = row.get(0);
            let declaration = serde_json::from_value(row.get(2))
                .map_err(|e| Error::Other(format!("the stored declaration of {name} is unreadable: {e}")))?;
            Ok(Entry { name, table: row.get(1), declaration })
        })
        .collect()
}

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
