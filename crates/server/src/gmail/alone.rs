//! Mailboxes without a server: for a command that looks once and is done.

use std::sync::Arc;
use std::time::Duration;

use gleaner::Pool;
use gleaner::bell::Bell;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::{Gmail, Google, Parts};
use crate::channels::Channels;
use crate::door::committer::{Committer, How};
use crate::door::contacts::Newcomers;
use crate::files::Files;

/// A reader of mailboxes, and everything it needs, until it is finished.
#[derive(Debug)]
pub struct Alone {
    pub gmail: Arc<Gmail>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Alone {
    pub fn new(google: Google, pool: Pool, channels: Channels, files: Files) -> Result<Self, reqwest::Error> {
        // The HTTP client leaves the choice of cryptography to the program; it may have been made already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let how = How { tasks: 1, group: 256, within: Duration::from_secs(30) };
        let (committer, mut tasks) = Committer::start(&pool, &Bell::new(pool.clone()), how);
        let (newcomers, creating) = Newcomers::start(pool.clone());
        tasks.push(creating);
        let gmail = Arc::new(Gmail::new(google, Parts { pool, channels, files, committer, newcomers })?);
        Ok(Self { gmail, stop: watch::channel(false).0, tasks })
    }

    /// Reads mailboxes as a server does. One that runs elsewhere may be faster, which is as well.
    pub fn read_mailboxes(&mut self) {
        let (_, no_hints) = mpsc::channel(1);
        self.tasks.insert(0, tokio::spawn(self.gmail.clone().run(no_hints, self.stop.subscribe())));
    }

    /// Gives back what is not finished, and waits for what is.
    pub async fn finish(self) {
        self.stop.send_replace(true);
        drop(self.gmail);
        for task in self.tasks {
            let _ = tokio::time::timeout(Duration::from_secs(30), task).await;
        }
    }
}
