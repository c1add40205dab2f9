//! Contacts of unknown senders, where the channel makes them: right after the commit, in a transaction of their own. The CRM's
//! contact trigger may call other machines, and nobody's webhook waits for that.

use gleaner::Pool;
use tokio::sync::mpsc;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// Tells of activities whose senders may be new.
#[derive(Debug, Clone)]
pub struct Newcomers(mpsc::UnboundedSender<Vec<Uuid>>);

impl Newcomers {
    /// Starts the task. It ends when the last clone is gone and everybody told of was looked at.
    pub fn start(pool: Pool) -> (Self, tokio::task::JoinHandle<()>) {
        let (tell, mut told) = mpsc::unbounded_channel::<Vec<Uuid>>();
        let task = tokio::spawn(async move {
            while let Some(mut activities) = told.recv().await {
                while let Ok(more) = told.try_recv() {
                    activities.extend(more);
                }
                if let Err(error) = create(&pool, &activities).await {
                    tracing::warn!(activities = activities.len(), %error, "no contacts were made of unknown senders; they are in the unmatched list");
                }
            }
        });
        (Self(tell), task)
    }

    pub fn tell(&self, activities: Vec<Uuid>) {
        if !activities.is_empty() {
            let _ = self.0.send(activities);
        }
    }
}

/// Makes and links contacts of those among the senders who are unknown.
pub async fn create(pool: &Pool, activities: &[Uuid]) -> gleaner::Result<()> {
    let client = pool.get().await.map_err(|e| gleaner::Error::Connect(e.to_string()))?;
    client
        .query_typed("select from gleaner.create_contacts($1)", &[(&activities, Type::UUID_ARRAY)])
        .await
        .map_err(gleaner::Error::doing("create contacts"))?;
    Ok(())
}
