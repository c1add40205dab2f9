//! Gmail: mailboxes are read by us, one server at a time each, and what came in is stored as if it had come through the door.
//!
//! # Layout
//!
//! - [`google`] says where Google is; `grant` and `token` are our leave to read; `budget` and `client` talk to the API.
//! - `sync` reads a mailbox to its end; `ledger` remembers how far; `watch` asks for hints by push; `keys` verify them.
//! - [`poll`] is the queue of mailboxes; [`ask`] asks for a look and waits for it; [`authorize`] asks a person for leave,
//!   whose browser comes back to [`routes`] or, without a public address, to [`loopback`]; [`alone`] is all this without a server.

pub mod alone;
pub mod ask;
pub mod authorize;
mod budget;
mod client;
pub mod error;
pub mod google;
mod grant;
mod keys;
mod ledger;
pub mod loopback;
pub mod poll;
pub mod routes;
mod sync;
mod token;
mod watch;

use std::sync::Arc;

use gleaner::Pool;
use gleaner_ingest::Channel;
use tokio::sync::Notify;
use uuid::Uuid;

pub use self::error::{Error, Result};
pub use self::google::Google;

use self::budget::Budgets;
use self::client::Mailbox;
use self::keys::Keys;
use self::token::Tokens;
use crate::channels::Channels;
use crate::door::committer::Committer;
use crate::door::contacts::Newcomers;
use crate::files::Files;

/// Everything that reads mailboxes. Shared by the poll, the push, the HTTP routes and the media that stay at Google.
#[derive(Debug)]
pub struct Gmail {
    google: Arc<Google>,
    http: reqwest::Client,
    tokens: Arc<Tokens>,
    budgets: Budgets,
    keys: Keys,
    pool: Pool,
    channels: Channels,
    files: Files,
    committer: Committer,
    newcomers: Newcomers,
    /// Rung when a look is wanted at once.
    wanted: Notify,
}

/// What mailboxes need of the rest of the server.
#[derive(Debug, Clone)]
pub struct Parts {
    pub pool: Pool,
    pub channels: Channels,
    pub files: Files,
    pub committer: Committer,
    pub newcomers: Newcomers,
}

impl Gmail {
    pub fn new(google: Google, parts: Parts) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .connect_timeout(std::time::Duration::from_secs(10))
            // Google's API never redirects, and a token must not follow a redirect anyway.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("gleaner/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let Parts { pool, channels, files, committer, newcomers } = parts;
        let tokens = Arc::new(Tokens::new(channels.clone()));
        let google = Arc::new(google);
        Ok(Self {
            keys: Keys::default(),
            budgets: Budgets::default(),
            google,
            http,
            tokens,
            pool,
            channels,
            files,
            committer,
            newcomers,
            wanted: Notify::new(),
        })
    }

    /// Asks for a look into the mailbox, now. Whichever server is free takes it.
    pub async fn request(&self, channel: Uuid) -> Result<()> {
        let client = self.pool.get().await?;
        ledger::request(&**client, channel).await?;
        self.wanted.notify_one();
        Ok(())
    }

    /// The channel with the keys that sign pushes, for one of Gmail; any other as it is.
    pub async fn with_keys(&self, channel: Arc<Channel>, request: &gleaner_ingest::Request<'_>) -> Arc<Channel> {
        if channel.provider_code != "gmail" || channel.settings.get("jwks").is_some() {
            return channel;
        }
        match self.keys.for_request(request, &self.google, &self.http).await {
            Some(keys) => Arc::new(keys::added(&channel, keys)),
            None => channel,
        }
    }

    /// The bytes of an attachment that stayed at Google.
    pub async fn attachment(&self, channel: Arc<Channel>, message: &str, attachment: &str) -> Result<Vec<u8>> {
        let answer = self.mailbox(channel).attachment(message, attachment).await?;
        let bytes = answer["data"].as_str().and_then(gleaner_ingest::providers::gmail::decode);
        bytes.ok_or_else(|| Error::Refused { status: 200, reason: "it sent an attachment without bytes".into() })
    }

    fn mailbox(&self, channel: Arc<Channel>) -> Mailbox {
        Mailbox::new(channel, self.google.clone(), self.http.clone(), self.tokens.clone(), &self.budgets)
    }
}
