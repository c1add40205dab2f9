//! Mailboxes without a server: for a command that polls once and ends.

use std::sync::Arc;
use std::time::Duration;

use gleaner::notify::Notifier;
use gleaner_http::database::Pool;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::{Gmail, Google};
use crate::channels::Channels;
use crate::files::Files;
use crate::webhooks::{Committer, How, Newcomers, Parts};

/// A reader of mailboxes with everything it needs.
#[derive(Debug)]
pub struct Alone {
    pub gmail: Arc<Gmail>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Alone {
    pub fn new(google: Google, pool: Pool, channels: Channels, files: Files) -> Result<Self, reqwest::Error> {
        // The HTTP client leaves the choice of the cryptography provider to the program. It may have been installed
        // already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let how = How { tasks: 1, group: 256, within: Duration::from_secs(30) };
        let (committer, mut tasks) = Committer::start(&pool, &Notifier::new(pool.clone()), how);
        let (newcomers, creating) = Newcomers::start(pool.clone());
        tasks.push(creating);
        let gmail = Arc::new(Gmail::new(google, Parts { pool, channels, files, committer, newcomers })?);
        Ok(Self { gmail, stop: watch::channel(false).0, tasks })
    }

    /// Reads mailboxes as a server does. If a running server is faster, the result is the same.
    pub fn read_mailboxes(&mut self) {
        let (_, no_hints) = mpsc::channel(1);
        self.tasks.insert(0, tokio::spawn(self.gmail.clone().run(no_hints, self.stop.subscribe())));
    }

    /// Releases the mailboxes that are not finished, and waits for the tasks to end.
    pub async fn finish(self) {
        self.stop.send_replace(true);
        drop(self.gmail);
        for task in self.tasks {
            let _ = tokio::time::timeout(Duration::from_secs(30), task).await;
        }
    }
}
