//! Gmail: we poll mailboxes, each by one server at a time, and store new messages as if they had arrived by webhook.
//!
//! # Layout
//!
//! - [`google`] has Google's addresses; `grant` and `token` are our permission to read; `budget` and `client` call the API.
//! - `sync` reads a mailbox to its end; `ledger` stores how far; `watch` subscribes to push notifications; `keys` verifies
//!   them.
//! - [`poll`] is the queue of mailboxes; [`ask`] requests a poll and waits for it; [`authorize`] asks a person for consent,
//!   whose browser returns to [`routes`] or, without a public address, to [`loopback`]; [`alone`] does all this without a
//!   server.

mod alone;
mod ask;
mod authorize;
mod budget;
mod client;
mod error;
mod google;
mod grant;
mod keys;
mod ledger;
mod loopback;
mod poll;
mod routes;
mod sync;
mod token;
mod watch;

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use gleaner_http::database::Pool;
use gleaner_ingest::{Channel, Request};
use tokio::sync::Notify;
use uuid::Uuid;

pub use self::alone::Alone;
pub use self::ask::Report;
pub use self::authorize::{CALLBACK, Consent};
pub use self::error::{Error, Result};
pub use self::google::{Google, Patience};
pub use self::loopback::{Back, Loopback};
pub use self::routes::router;

use self::budget::Budgets;
use self::client::Mailbox;
use self::keys::Keys;
use self::token::Tokens;
use crate::channels::Channels;
use crate::files::Files;
use crate::webhooks::{Committer, Newcomers, Parts, SigningKeys};

/// Everything needed to read mailboxes. Shared by the poll, the push notifications, the HTTP routes and the media that stay
/// at Google.
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
    /// Notified when a poll is requested at once.
    wanted: Notify,
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

    /// Requests a poll of the mailbox now. Any free server takes it.
    pub async fn request(&self, channel: Uuid) -> Result<()> {
        let client = self.pool.get().await?;
        ledger::request(&**client, channel).await?;
        self.wanted.notify_one();
        Ok(())
    }

    /// The bytes of an attachment that is stored at Google.
    pub async fn attachment(&self, channel: Arc<Channel>, message: &str, attachment: &str) -> Result<Vec<u8>> {
        let answer = self.mailbox(channel).attachment(message, attachment).await?;
        let bytes = answer["data"].as_str().and_then(gleaner_ingest::providers::gmail::decode);
        bytes.ok_or_else(|| Error::Refused { status: 200, reason: "it sent an attachment without bytes".into() })
    }

    fn mailbox(&self, channel: Arc<Channel>) -> Mailbox {
        Mailbox::new(channel, self.google.clone(), self.http.clone(), self.tokens.clone(), &self.budgets)
    }
}

impl SigningKeys for Gmail {
    /// The keys that sign push notifications, for a Gmail channel.
    fn with_keys<'a>(&'a self, channel: Arc<Channel>, request: &'a Request<'a>) -> BoxFuture<'a, Arc<Channel>> {
        async move {
            if channel.provider_code != "gmail" || channel.settings.get("jwks").is_some() {
                return channel;
            }
            match self.keys.for_request(request, &self.google, &self.http).await {
                Some(keys) => Arc::new(keys::added(&channel, keys)),
                None => channel,
            }
        }
        .boxed()
    }
}
