//! Claims that come while another of the same caller is under way share the next statement.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use gleaner::queue::Claimed;
use gleaner::{Acts, Claim, Error, Pool};
use tokio::sync::oneshot;

use super::key::Key;
use crate::access::{Caller, begin};

/// Claims in one statement.
const MOST_TOGETHER: usize = 64;

/// What a claim came to. The error is shared by all that asked together.
pub type Answer = Result<Claimed, Arc<Error>>;

#[derive(Debug, Clone)]
pub struct Combiner {
    pool: Pool,
    waiting: Arc<Mutex<HashMap<Key, Vec<Waiting>>>>,
    statements: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Waiting {
    claim: Claim,
    /// The queue as this one knows it: `gleaner attach` may change it while the line never ends.
    acts: Arc<Acts>,
    answer: oneshot::Sender<Answer>,
}

impl Combiner {
    pub fn new(pool: Pool) -> Self {
        Self { pool, waiting: Arc::default(), statements: Arc::default() }
    }

    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Claims, together with whoever claims the same under the same `key` meanwhile.
    pub async fn claim(&self, key: Key, caller: &Caller, acts: &Arc<Acts>, claim: Claim) -> Answer {
        let (answer, answered) = oneshot::channel();
        let is_first = {
            let mut waiting = self.waiting.lock().expect("no panic holds it");
            let is_first = !waiting.contains_key(&key);
            waiting.entry(key).or_default().push(Waiting { claim, acts: acts.clone(), answer });
            is_first
        };
        if is_first {
            tokio::spawn(self.clone().serve(key, caller.clone()));
        }
        answered.await.unwrap_or_else(|_| Err(Arc::new(Error::Other("the claim was given up".into()))))
    }

    /// Serves the line until nobody stands in it. A task of its own: a client that goes away must not take the others' claims
    /// with it.
    async fn serve(self, key: Key, caller: Caller) {
        loop {
            let together: Vec<Waiting> = {
                let mut waiting = self.waiting.lock().expect("no panic holds it");
                let Some(line) = waiting.get_mut(&key) else { return };
                if line.is_empty() {
                    waiting.remove(&key);
                    return;
                }
                let most = line.len().min(MOST_TOGETHER);
                // Whoever has gone meanwhile would be given rows that nobody works.
                line.drain(..most).filter(|waiting| !waiting.answer.is_closed()).collect()
            };
            let claims: Vec<Claim> = together.iter().map(|waiting| waiting.claim.clone()).collect();
            let Some(acts) = together.last().map(|waiting| waiting.acts.clone()) else { continue };
            self.statements.fetch_add(1, Ordering::Relaxed);
            // A panic would leave a line that nobody serves.
            let asked = AssertUnwindSafe(self.ask(&caller, &acts, &claims)).catch_unwind().await;
            match asked.unwrap_or_else(|_| Err(Error::Other("the claim met a mistake of ours".into()))) {
                Ok(all) => {
                    for (waiting, claimed) in together.into_iter().zip(all) {
                        if let Err(Ok(unheard)) = waiting.answer.send(Ok(claimed)) {
                            self.give_back(&caller, &acts, &unheard).await;
                        }
                    }
                }
                Err(error) => {
                    let error = Arc::new(error);
                    for waiting in together {
                        let _ = waiting.answer.send(Err(error.clone()));
                    }
                }
            }
        }
    }

    async fn ask(&self, caller: &Caller, acts: &Acts, claims: &[Claim]) -> Result<Vec<Claimed>, Error> {
        let mut client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let transaction = begin(&mut client, caller).await?;
        let all = acts.claim_many(&*transaction, claims).await?;
        transaction.commit().await.map_err(Error::doing("commit the claim"))?;
        Ok(all)
    }

    /// The client left while its claim was made: its rows need not wait for their leases to end.
    async fn give_back(&self, caller: &Caller, acts: &Acts, claimed: &Claimed) {
        if claimed.items.is_empty() {
            return;
        }
        let held: Vec<(&str, i64)> = claimed.items.iter().map(|item| (item.key.as_str(), item.lease)).collect();
        let given_back = async {
            let mut client = self.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
            let transaction = begin(&mut client, caller).await?;
            acts.release(&*transaction, &held).await?;
            transaction.commit().await.map_err(Error::doing("commit the release"))
        };
        if let Err(error) = given_back.await {
            tracing::debug!(%error, "rows of a client that left wait for their leases to end");
        }
    }
}
