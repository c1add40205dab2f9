//! One channel by its name or its id.

use gleaner_http::begin;
use gleaner_http::database::Error as Database;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::row::{Opened, Row, SELECT};
use super::save::Ends;
use super::{Channels, Error, Result};

/// After this many conflicts with other writers, a change fails with an error.
const TRIES: u32 = 8;

impl Channels {
    /// The channel with that name or id, decrypted.
    pub async fn get(&self, name_or_id: &str) -> Result<Opened> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client, &self.caller).await?;
        let row = self.find(&*transaction, name_or_id).await?;
        transaction.commit().await.map_err(Database::doing("commit"))?;
        let opened = self.open(&row)?;
        self.seal_on_sight(&row, &opened).await;
        Ok(opened)
    }

    pub(super) async fn find(&self, client: &impl GenericClient, name_or_id: &str) -> Result<Row> {
        // Try the id first: a channel may have any name, even another channel's id.
        let id = Uuid::parse_str(name_or_id).ok();
        let rows = client
            .query_typed(
                &format!("{SELECT} where c.id = $1 or c.name = $2 order by c.id limit 20"),
                &[(&id, Type::UUID), (&name_or_id, Type::TEXT)],
            )
            .await
            .map_err(Database::doing("look for the channel"))?;
        let mut rows: Vec<Row> = rows.iter().map(Row::read).collect();
        if let Some(at) = rows.iter().position(|row| Some(row.id) == id) {
            return Ok(rows.swap_remove(at));
        }
        match rows.len() {
            0 => Err(Error::Unknown(name_or_id.to_owned())),
            1 => Ok(rows.remove(0)),
            _ => Err(Error::Ambiguous { name: name_or_id.to_owned(), ids: rows.iter().map(|row| row.id).collect() }),
        }
    }

    /// Reads the channel, applies `change` and writes it. Starts again if another client wrote in the meantime.
    pub(super) async fn change(&self, name_or_id: &str, mut change: impl FnMut(&mut Opened) -> Result<Ends>) -> Result<Opened> {
        let mut client = self.client().await?;
        for _ in 0..TRIES {
            let transaction = begin(&mut client, &self.caller).await?;
            let row = self.find(&*transaction, name_or_id).await?;
            let mut opened = self.open(&row)?;
            let ends = change(&mut opened)?;
            if self.save(&*transaction, &opened, &ends).await? {
                let row = self.find(&*transaction, &opened.channel.id.to_string()).await?;
                transaction.commit().await.map_err(Database::doing("commit"))?;
                self.shared.cache.forget();
                return self.open(&row);
            }
        }
        Err(Error::Busy)
    }
}
