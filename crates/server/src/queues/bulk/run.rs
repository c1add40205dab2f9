//! Works a bulk act off, batch by batch.

use futures_util::FutureExt as _;
use gleaner::queue::Answer;
use gleaner::{Error, Outcome, Result};
use gleaner_http::Caller;
use tokio_postgres::GenericClient;
use uuid::Uuid;

use super::request::{BulkAct, BulkRequest};
use super::store::{self, Batch};
use crate::queues::Queues;
use crate::queues::acts::texts;

/// The most rows in a batch: rows are locked until it is committed.
const BATCH: usize = 500;
/// How often a batch is tried when the database is away or meets a deadlock.
const TRIES: u32 = 5;

impl Queues {
    /// Works it off until it is done, stopped or failed. Nothing else waits for it.
    pub(super) async fn work_off(self, caller: Caller, queue: String, id: Uuid, request: BulkRequest, keys: Vec<String>) {
        let worked = self.batches(&caller, &queue, id, &request, &keys).await;
        let error = worked.as_ref().err().map(ToString::to_string);
        let ended = async {
            let client = self.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
            store::end(&**client, id, error.as_deref()).await
        };
        if let Err(error) = worked.and(ended.await) {
            tracing::warn!(%error, queue, "a bulk act ended early");
        }
    }

    async fn batches(&self, caller: &Caller, queue: &str, id: Uuid, request: &BulkRequest, keys: &[String]) -> Result<()> {
        for batch in keys.chunks(BATCH) {
            let mut tries = 1;
            let did = loop {
                match self.batch(caller, queue, request, batch.to_vec()).await {
                    Err(error) if error.is_transient() && tries < TRIES => {
                        tokio::time::sleep(std::time::Duration::from_millis(200) * tries).await;
                        tries += 1;
                    }
                    other => break other?,
                }
            };
            self.notify(queue);
            let client = self.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
            if !store::record(&**client, id, did).await? {
                break;
            }
        }
        Ok(())
    }

    async fn batch(&self, caller: &Caller, queue: &str, request: &BulkRequest, keys: Vec<String>) -> Result<Batch> {
        let filter = request.filter.read();
        let chosen = keys.len();
        let most = i64::try_from(chosen).unwrap_or(i64::MAX);
        let view = self.viewing(caller, queue, |view, transaction, _| {
            async move { view.keys(&**transaction, &filter, Some(&keys), most).await }.boxed()
        });
        let still = view.await?;
        let acts = self.acts(queue).await?;
        let (request, left) = (request.clone(), still.clone());
        let answers = crate::queues::transaction::with_caller(&self.shared.pool, caller, |transaction| {
            async move {
                let mut acts = gleaner::Acts::clone(&acts);
                if let Some(tenant) = &request.filter.tenant {
                    acts = acts.within(&**transaction, tenant.to_string()).await?;
                }
                act(&acts, &**transaction, &request, &left).await
            }
            .boxed()
        })
        .await?;
        let counted = |wanted: &[Outcome]| i32::try_from(answers.iter().filter(|one| wanted.contains(&one.outcome)).count()).unwrap_or(0);
        let passed = i32::try_from(chosen - still.len()).unwrap_or(0);
        Ok(Batch {
            done: counted(&[Outcome::Done]),
            already: passed + counted(&[Outcome::Already, Outcome::Gone]),
            failed: counted(&[Outcome::Lost]),
        })
    }
}

async fn act(acts: &gleaner::Acts, client: &impl GenericClient, request: &BulkRequest, keys: &[String]) -> Result<Vec<Answer>> {
    let keys = texts(keys);
    let reason = request.reason.as_deref();
    match request.act {
        BulkAct::Requeue => acts.requeue(client, &keys).await,
        BulkAct::Cancel => acts.cancel(client, &keys, reason).await,
        BulkAct::Bury => acts.bury(client, &keys, reason).await,
        BulkAct::Assign => acts.assign(client, &keys, request.owner.as_ref().map(ToString::to_string).as_deref()).await,
        BulkAct::Reschedule => acts.reschedule(client, &keys, request.due.as_deref().unwrap_or_default()).await,
    }
}
