//! Follow-ups: composes a message when it is due and sends it, once or not at all.
//!
//! # Layout
//!
//! - [`Settings`] say how often to look and what may be used; `sinks` holds the ways out that are configured.
//! - `route` chooses the way out and the address, `compose` writes the text.
//! - [`Followups::run`] takes one claimed action through all of it. What may still stop a message is looked at in the database, by
//!   `gleaner.begin_sending`, under the row's lock: see `sql/systems/followups`.

mod compose;
mod prepared;
mod route;
mod settings;
mod sinks;

use std::time::{Duration, Instant};

use gleaner::worker::{Context, Replied, Reply};
use gleaner::{Failure, Item};
use gleaner_stages::fetch::Fetch;
use gleaner_stages::models::Models;
use gleaner_stages::sinks::{Message, NotSent, UNKNOWN};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use self::prepared::{Begun, Prepared};
pub use self::settings::{OnUnknown, Polling, Settings, Ways};
use self::sinks::Sinks;
pub use self::sinks::{Channel, Channels};

/// The name of the queue.
pub const QUEUE: &str = "followups";
/// A crashed daemon's actions come back after this long. Once sending has begun the lease lasts longer.
pub const HOLD: Duration = Duration::from_secs(30);
/// How many claimed actions wait for their time, for each one that may be sent at once.
const WAITING: usize = 50;

/// Sends the actions of the queue `followups`.
#[derive(Debug)]
pub struct Followups {
    settings: Settings,
    sinks: Sinks,
    models: Models,
    /// Actions that are claimed early wait without taking the place of one that is due.
    sending: Semaphore,
}

impl Followups {
    /// Fails for settings that can never work, such as a mail address that is none.
    pub fn new(settings: Settings, models: Models) -> Result<Self, String> {
        let sinks = Sinks::new(&settings.ways)?;
        Ok(Self { sending: Semaphore::new(settings.polling.batch_size), sinks, models, settings })
    }

    /// How often to look, and how many to take.
    pub fn polling(&self) -> &Polling {
        &self.settings.polling
    }

    /// How many actions may be held at once, waiting ones included.
    pub fn room(&self) -> usize {
        self.settings.polling.batch_size * if self.settings.polling.preemptive_window.is_zero() { 1 } else { WAITING }
    }

    /// Takes one claimed action through composing and sending.
    pub async fn run(&self, database: &dyn Fetch, item: Item, context: Context) -> Replied {
        let sent = self.execute(database, &item, &context).await;
        if let Err(failure) = &sent {
            tracing::error!("Failed to execute action {}: {}", item.key, failure.message);
        }
        sent
    }

    async fn execute(&self, database: &dyn Fetch, item: &Item, context: &Context) -> Replied {
        let request = json!({"id": item.key, "lease": item.lease});
        let answer = database.call("prepare_followup", request).await.map_err(|failure| self.again(failure, item))?;
        let Some(prepared) = Prepared::read(answer)? else { return Ok(Reply::Ended) };
        let due = Instant::now() + prepared.wait;
        let until_sending = async {
            let message = tokio::time::timeout(self.settings.polling.execution_timeout, self.compose(&prepared)).await;
            let message = message.unwrap_or_else(|_| Err(Failure::new("composing took longer than execution_timeout_seconds")));
            let message = message.map_err(|failure| self.again(failure, item))?;
            tokio::time::sleep_until(due.into()).await;
            // Closed never.
            let permit = self.sending.acquire().await.map_err(|error| Failure::new(error.to_string()))?;
            Ok::<_, Failure>((message, permit))
        };
        let (message, _permit) = tokio::select! {
            ready = until_sending => ready?,
            () = context.ended() => return Ok(Reply::Ended),
        };
        match self.begin(database, item, &prepared, &message).await? {
            Begun::Lost => Ok(Reply::Ended),
            Begun::Cancelled(reason) => {
                tracing::info!(action = item.key, reason, "a follow-up was called off at the last moment");
                Ok(Reply::Ended)
            }
            Begun::Deferred { wait, reason } => {
                tracing::info!(action = item.key, reason, wait_seconds = wait.as_secs(), "a follow-up waits");
                Ok(Reply::Snooze(wait))
            }
            Begun::Send { key, message, lateness } => {
                let reply = self.send(database, item, &prepared, &key, &message).await?;
                let latency = lateness.as_millis();
                tracing::info!("Executed action {} for prospect {}, latency={latency}ms", item.key, prepared.action.prospect_id);
                Ok(reply)
            }
        }
    }

    async fn compose(&self, prepared: &Prepared) -> Result<Message, Failure> {
        if let Some(message) = &prepared.action.message {
            // A second try sends what the first one stored.
            return Ok(message.clone());
        }
        let mut message = route::route(prepared, &self.settings, &self.sinks)?;
        message.text = compose::text(prepared, &self.settings, &self.models).await?;
        message.subject = compose::subject(prepared, &message);
        Ok(message)
    }

    /// The last look, and the step behind which the message may be on its way.
    async fn begin(&self, database: &dyn Fetch, item: &Item, prepared: &Prepared, message: &Message) -> Result<Begun, Failure> {
        let on_unknown = prepared.on_unknown().unwrap_or_else(|| self.settings.on_unknown(self.sinks.knows_keys(&message.sink)));
        let request = json!({"id": item.key, "lease": item.lease, "message": message, "on_unknown": on_unknown.as_str()});
        loop {
            let answer = database.call("begin_sending", request.clone()).await.map_err(|failure| self.again(failure, item))?;
            match Begun::read(answer)? {
                // The database's clock decides, and ours ran ahead.
                Err(wait) => tokio::time::sleep(wait).await,
                Ok(begun) => return Ok(begun),
            }
        }
    }

    async fn send(&self, database: &dyn Fetch, item: &Item, prepared: &Prepared, key: &str, message: &Message) -> Replied {
        let result = |answer: Value| json!({"sink": message.sink, "to": message.to, "key": key, "answer": answer});
        if self.settings.dry_run || prepared.action.payload["dry_run"] == true {
            let mut result = result(Value::Null);
            result["dry_run"] = json!(true);
            return Ok(Reply::Complete(Some(result)));
        }
        let sink = match self.sinks.get(message).await {
            Ok(sink) => sink,
            Err(why) => return Err(self.again(Failure::new(why).category("ConfigurationError"), item)),
        };
        match sink.send(key, message, self.settings.polling.execution_timeout).await {
            Ok(sent) => {
                let mut result = result(sent.answer);
                result["receipt_id"] = json!(sent.receipt_id.as_ref().or(sent.message_id.as_ref()));
                result["message_id"] = json!(sent.message_id);
                Ok(Reply::Complete(Some(result)))
            }
            Err(NotSent::Refused(failure)) => Err(self.again(failure, item)),
            Err(NotSent::Unwanted(reason)) => {
                database.call("refuse_contact", json!({"id": item.key, "lease": item.lease, "reason": reason})).await?;
                Ok(Reply::Ended)
            }
            Err(NotSent::Unknown(failure)) => {
                let on_unknown = prepared.on_unknown().unwrap_or_else(|| self.settings.on_unknown(sink.knows_keys()));
                Err(match on_unknown {
                    OnUnknown::Resend => self.again(failure, item),
                    OnUnknown::Ask => Failure::new(format!("outcome unknown: {}", failure.message)).category(UNKNOWN).for_good(),
                })
            }
        }
    }

    /// A failure with the configured delay, or the last one.
    fn again(&self, mut failure: Failure, item: &Item) -> Failure {
        let polling = &self.settings.polling;
        if failure.retryable && item.attempts >= polling.max_retries {
            failure.message = format!("{} (given up after {} retries)", failure.message, polling.max_retries);
            failure.retryable = false;
        }
        failure.retry_in = failure.retry_in.or(Some(polling.retry_delay)).filter(|_| failure.retryable);
        failure
    }
}
