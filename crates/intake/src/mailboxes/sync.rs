//! Reads a mailbox to its end: from where the last poll stopped, or from the beginning if that is no longer known.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use gleaner_ingest::Channel;
use gleaner_ingest::providers::gmail::{labels, message, number};
use serde_json::Value;

use super::Gmail;
use super::client::Mailbox;
use super::error::{Error, Result};
use super::ledger::{self, Account};
use crate::webhooks::{Arrival, Committed, NotStored, prepare};

/// The number of messages fetched at the same time: enough to hide the latency to Google, too few to be a burst.
const AT_ONCE: usize = 4;
/// The number of messages between two checks for what is stored already.
const CHUNK: usize = 100;
const DAY: f64 = 24.0 * 3600.0;

/// The result of a poll.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Read {
    pub stored: usize,
    pub history_id: String,
    pub mailbox: Option<String>,
}

impl Gmail {
    /// Stores everything since the last poll. The position is not saved here: the caller saves it once everything is
    /// durable.
    pub(super) async fn read(&self, channel: Arc<Channel>, account: &Account) -> Result<Read> {
        let mailbox = self.mailbox(channel);
        match &account.history_id {
            None => self.read_whole(&mailbox, None).await,
            Some(start) => match self.read_since(&mailbox, start, account).await {
                // Google drops the history after a week, sometimes within hours.
                Err(Error::Gone) => {
                    tracing::info!(channel = %mailbox.channel.name, "the history is too old to go on from; reading the mailbox anew");
                    self.read_whole(&mailbox, Some(account)).await
                }
                other => other,
            },
        }
    }

    /// The history since `start`, page by page.
    async fn read_since(&self, mailbox: &Mailbox, start: &str, account: &Account) -> Result<Read> {
        let mut read = Read { history_id: start.to_owned(), ..Read::default() };
        let mut page = None;
        let mut seen = HashSet::new();
        // The channel's own search is called once, and only when there are messages to compare with it.
        let mut chosen: Option<HashSet<String>> = None;
        loop {
            let found = mailbox.history(start, page.as_deref()).await?;
            let mut ids: Vec<String> = found.ids.into_iter().filter(|id| seen.insert(id.clone())).collect();
            if let Some(query) = mailbox.channel.settings.text("query")
                && !ids.is_empty()
            {
                let chosen = match &mut chosen {
                    Some(chosen) => chosen,
                    none => none.insert(self.search(mailbox, &since(query, account.read_ago), usize::MAX).await?.into_iter().collect()),
                };
                ids.retain(|id| chosen.contains(id));
            }
            read.stored += self.bring(mailbox, ids).await?;
            if let Some(id) = found.history_id {
                read.history_id = id;
            }
            match found.next {
                Some(next) => page = Some(next),
                None => return Ok(read),
            }
        }
    }

    /// Reads the mailbox itself: the first time a limited window of it, later everything since the last poll. Duplicates
    /// are stored once.
    async fn read_whole(&self, mailbox: &Mailbox, account: Option<&Account>) -> Result<Read> {
        // Before the list, so that messages that arrive in the meantime are in the history that follows.
        let (address, history_id) = mailbox.profile().await?;
        let query = mailbox.channel.settings.text("query").unwrap_or("in:inbox");
        let days = number(&mailbox.channel, "first_sync_days").unwrap_or(7.0).max(0.0);
        let (query, most) = match account.and_then(|account| account.read_ago) {
            Some(ago) => (since(query, Some(ago.max(days * DAY))), usize::MAX),
            None => {
                let most = number(&mailbox.channel, "first_sync_messages").unwrap_or(500.0).max(0.0);
                // Gmail counts days from one.
                (format!("{query} newer_than:{}d", (days.ceil() as u64).max(1)), if days > 0.0 { most as usize } else { 0 })
            }
        };
        let mut ids = self.search(mailbox, &query, most).await?;
        // The list begins with the newest message. Store the oldest first, in the order in which people read.
        ids.reverse();
        let stored = self.bring(mailbox, ids).await?;
        Ok(Read { stored, history_id, mailbox: Some(address).filter(|address| !address.is_empty()) })
    }

    async fn search(&self, mailbox: &Mailbox, query: &str, most: usize) -> Result<Vec<String>> {
        let labels = labels(&mailbox.channel);
        let (mut ids, mut page) = (Vec::new(), None);
        while ids.len() < most {
            let found = mailbox.list(query, &labels, page.as_deref()).await?;
            ids.extend(found.ids);
            page = found.next;
            if page.is_none() {
                break;
            }
        }
        ids.truncate(most);
        Ok(ids)
    }

    /// Fetches and stores the messages, in order. Returns how many were new.
    async fn bring(&self, mailbox: &Mailbox, ids: Vec<String>) -> Result<usize> {
        let mut stored = 0;
        for chunk in ids.chunks(CHUNK) {
            let client = self.pool.get().await?;
            let known: HashSet<String> = ledger::known(&**client, mailbox.channel.id, chunk).await?.into_iter().collect();
            drop(client);
            let missing: Vec<String> = chunk.iter().filter(|id| !known.contains(*id)).cloned().collect();
            let fetch = |id: String| {
                let mailbox = mailbox.clone();
                async move { mailbox.message(&id).await }
            };
            let mut fetched = stream::iter(missing.into_iter().map(fetch)).buffered(AT_ONCE);
            while let Some(found) = fetched.next().await {
                // None when it was deleted since the list was made. Then there is nothing to store.
                if let Some(found) = found? {
                    stored += usize::from(self.store(&mailbox.channel, &found).await?);
                }
            }
        }
        Ok(stored)
    }

    /// Stores one message, durable when this returns. True when it is new.
    async fn store(&self, channel: &Arc<Channel>, found: &Value) -> Result<bool> {
        let Some(event) = message(found, channel) else { return Ok(false) };
        let arrival = Arrival { events: vec![event], ..Arrival::default() };
        let prepared = prepare(&self.files, channel, arrival).await.map_err(|error| Error::Store(error.to_string()))?;
        match self.committer.commit(prepared.submission).await {
            Ok(Committed::Stored(stored)) => {
                let fresh: Vec<_> = stored.iter().filter(|one| one.fresh).map(|one| one.id).collect();
                let new = !fresh.is_empty();
                if channel.auto_create_contacts {
                    self.newcomers.add(fresh);
                }
                Ok(new)
            }
            Ok(Committed::Nothing | Committed::Replayed) => Ok(false),
            // The channel was paused or deleted during the poll.
            Ok(Committed::Closed) => Err(Error::Lost),
            // One message that the database will never accept must not block those after it.
            Err(NotStored::Data { code }) => {
                tracing::error!(channel = %channel.name, message = found["id"].as_str(), code, "a message cannot be stored and is left out");
                Ok(false)
            }
            Err(NotStored::Away(why)) => Err(Error::Store(why)),
        }
    }
}

/// The search, limited to messages of the last `seconds_ago` seconds plus a day, since clocks and zones differ.
fn since(query: &str, seconds_ago: Option<f64>) -> String {
    let Some(ago) = seconds_ago else { return query.to_owned() };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    format!("{query} after:{}", (now - ago - DAY).max(0.0) as u64)
}
