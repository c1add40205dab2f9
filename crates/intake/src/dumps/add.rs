//! Stores a document, then its row. The file comes first: a row never names a file that is not there.

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use gleaner_http::database::Error;
use gleaner_http::{Caller, with_caller};
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Added, Dumps, Failure, kind};

/// A document as it is sent.
#[derive(Debug, Clone, Default)]
pub struct Upload {
    /// The caller's oldest basket where none is named.
    pub basket: Option<Uuid>,
    pub name: String,
    /// What the sender says it is. The bytes decide.
    pub media_type: Option<String>,
}

impl Dumps {
    /// Adds a document on behalf of the caller, whose rights decide. The same file twice in one basket is one dump.
    pub async fn add<E: std::fmt::Display>(
        &self,
        caller: &Caller,
        upload: &Upload,
        body: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Added, Failure> {
        // Rights first: a caller who may not add a dump sends no body.
        let basket = self.basket(caller, upload.basket).await?;
        let _turn = self.turns.acquire().await.map_err(|error| Failure::Source(error.to_string()))?;
        let bytes = self.read(body).await?;
        let name = kind::name(&upload.name);
        let media_type = kind::media_type(&bytes, &name, upload.media_type.as_deref()).ok_or(Failure::Kind)?;
        let added = Added {
            id: Uuid::new_v4(),
            basket_id: basket,
            size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            media_type: media_type.to_owned(),
            sha256: hex::encode(Sha256::digest(&bytes)),
            name,
            known: false,
        };
        if let Some(known) = self.known(caller, &added).await? {
            return Ok(known);
        }
        // Text needs no reader: it is there at once.
        let body_md = if [kind::TEXT, kind::MARKDOWN].contains(&media_type) {
            kind::text(&bytes).unwrap_or_default().to_owned()
        } else {
            String::new()
        };
        let path = path(added.id, &added.sha256);
        self.files.put(&path, bytes).await?;
        let inserted = self.insert(caller, &added, body_md).await;
        if !matches!(inserted, Ok(true))
            && let Err(error) = self.files.delete(&path).await
        {
            tracing::warn!(path, %error, "a file without a row stays behind");
        }
        if inserted? {
            return Ok(added);
        }
        // Another request added the same file in the meantime.
        self.known(caller, &added).await?.ok_or(Failure::Basket)
    }

    async fn read<E: std::fmt::Display>(&self, body: impl Stream<Item = Result<Bytes, E>>) -> Result<Bytes, Failure> {
        let (mut all, mut body) = (BytesMut::new(), std::pin::pin!(body));
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| Failure::Source(error.to_string()))?;
            if (all.len() + piece.len()) as u64 > self.limit {
                return Err(Failure::TooLarge { limit: self.limit });
            }
            all.extend_from_slice(&piece);
        }
        if all.is_empty() { Err(Failure::Empty) } else { Ok(all.freeze()) }
    }

    /// The basket, if the caller may see it.
    async fn basket(&self, caller: &Caller, wanted: Option<Uuid>) -> Result<Uuid, Failure> {
        let found = with_caller(&self.pool, caller, |transaction| {
            Box::pin(async move {
                let sql = "select b.id from public.baskets as b where $1::uuid is null or b.id = $1 order by b.created_at, b.id limit 1";
                let row = transaction.query_typed_opt(sql, &[(&wanted, Type::UUID)]).await;
                Ok::<_, Error>(row.map_err(Error::doing("look for the basket"))?.map(|row| row.get::<_, Uuid>(0)))
            })
        })
        .await?;
        found.ok_or(if wanted.is_some() { Failure::Basket } else { Failure::NoBasket })
    }

    async fn known(&self, caller: &Caller, added: &Added) -> Result<Option<Added>, Failure> {
        let (basket, sha256) = (added.basket_id, added.sha256.clone());
        let row = with_caller(&self.pool, caller, |transaction| {
            Box::pin(async move {
                let sql = "select d.id, d.file_name, d.media_type from public.raw_dumps as d where d.basket_id = $1 and d.file_sha256 = $2";
                let found = transaction.query_typed_opt(sql, &[(&basket, Type::UUID), (&sha256, Type::TEXT)]).await;
                found.map_err(Error::doing("look for the same file"))
            })
        })
        .await?;
        let same =
            |row: tokio_postgres::Row| Added { id: row.get(0), name: row.get(1), media_type: row.get(2), known: true, ..added.clone() };
        Ok(row.map(same))
    }

    /// False if the basket has the file already.
    async fn insert(&self, caller: &Caller, added: &Added, body_md: String) -> Result<bool, Failure> {
        let added = added.clone();
        let inserted = with_caller(&self.pool, caller, |transaction| {
            Box::pin(async move {
                let sql = "insert into public.raw_dumps (id, basket_id, body_md, file_name, file_size, media_type, file_sha256)
                           values ($1, $2, $3, $4, $5, $6, $7) on conflict (basket_id, file_sha256) do nothing";
                let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 7] = [
                    (&added.id, Type::UUID),
                    (&added.basket_id, Type::UUID),
                    (&body_md, Type::TEXT),
                    (&added.name, Type::TEXT),
                    (&added.size, Type::INT8),
                    (&added.media_type, Type::TEXT),
                    (&added.sha256, Type::TEXT),
                ];
                transaction.execute_typed(sql, &values).await.map_err(Error::doing("add the document"))
            })
        })
        .await?;
        Ok(inserted == 1)
    }
}

/// Where the file of a dump is. The hash is part of it: people may choose the id of a row they insert, and must not reach the file
/// of a deleted dump by its id.
pub(super) fn path(dump: Uuid, sha256: &str) -> String {
    format!("dumps/{dump}/{sha256}")
}
