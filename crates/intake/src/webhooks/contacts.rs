//! Creates contacts for unknown senders, on channels that are configured for it. This happens right after the commit, in a
//! transaction of its own: the CRM's contact trigger may call other machines, and no webhook response may wait for that.

use gleaner_http::database::Pool;
use tokio::sync::mpsc;
use uuid::Uuid;

/// Sends the ids of activities whose senders may be new.
#[derive(Debug, Clone)]
pub struct Newcomers(mpsc::UnboundedSender<Vec<Uuid>>);

impl Newcomers {
    /// Starts the task. It ends when the last clone is dropped and every activity sent to it was processed.
    pub fn start(pool: Pool) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, mut received) = mpsc::unbounded_channel::<Vec<Uuid>>();
        let task = tokio::spawn(async move {
            while let Some(mut activities) = received.recv().await {
                while let Ok(more) = received.try_recv() {
                    activities.extend(more);
                }
                if let Err(error) = create(&pool, &activities).await {
                    tracing::warn!(activities = activities.len(), %error, "no contacts were made of unknown senders; they are in the unmatched list");
                }
            }
        });
        (Self(sender), task)
    }

    pub fn add(&self, activities: Vec<Uuid>) {
        if !activities.is_empty() {
            let _ = self.0.send(activities);
        }
    }
}

/// Creates the contacts in a transaction of its own.
pub(super) async fn create(pool: &Pool, activities: &[Uuid]) -> gleaner_http::database::Result<()> {
    let client = pool.get().await.map_err(|e| gleaner_http::database::Error::Connect(e.to_string()))?;
    crate::contacts::create(&**client, activities).await.map(drop)
}
