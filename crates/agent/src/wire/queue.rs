//! The acts of one queue over the wire, whichever routes they use.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gleaner::queue::{Answer, Claim, Claimed, Completion, Failure, Held, Progress, Waiting};
use gleaner::transport::{Push, Transport};
use gleaner::{Error, Result};
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::http::Http;
use super::native::{QueueEntry, Routes};
use super::rpc::Functions;
use super::shape::Shape;
use super::socket::{Channel, Socket};

/// The delays before a claim without a response is sent again.
const ASK_AGAIN: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(700)];

/// The limit of rows in one response. If a server truncated a longer response, the remaining rows would be claimed by a client
/// that does not know about them.
const MOST_ROWS: i32 = 1000;

#[derive(Debug)]
pub(super) enum Acts {
    Native(QueueEntry),
    Rpc(Box<Shape>),
}

/// A queue accessed through a server.
#[derive(Debug)]
pub struct WireQueue {
    http: Arc<Http>,
    socket: Socket,
    name: String,
    acts: Acts,
    /// A claim that got no response. Its rows may be ours: the next claim of the same agent asks for them first.
    unanswered: Mutex<Option<(Claim, Uuid)>>,
    /// The last claim found nothing. Until this time the queue counts as empty.
    empty_until: Mutex<Option<Instant>>,
}

/// How long a queue counts as empty after a claim that found nothing, unless an item falls due earlier. The next claim comes
/// sooner.
const EMPTY_FOR: Duration = Duration::from_secs(75);

/// Calls an act over the routes of this queue.
macro_rules! act {
    ($self:ident, $act:ident ( $($argument:expr),* )) => {
        match &$self.acts {
            Acts::Native(_) => Routes { http: &$self.http, queue: &$self.name }.$act($($argument),*).await,
            Acts::Rpc(shape) => Functions { http: &$self.http, shape }.$act($($argument),*).await,
        }
    };
}

impl WireQueue {
    pub(super) fn new(http: Arc<Http>, socket: Socket, name: &str, acts: Acts) -> Self {
        Self { http, socket, name: name.to_owned(), acts, unanswered: Mutex::default(), empty_until: Mutex::default() }
    }

    /// Sends the claim until there is a response or it takes too long. In that case the request is remembered.
    async fn ask(&self, claim: &Claim, request: Uuid, mut first: bool) -> Result<Claimed> {
        let mut pauses = ASK_AGAIN.into_iter();
        loop {
            let error = match act!(self, claim(claim, request, first)) {
                Err(error) if is_unanswered(&error) => error,
                answered => {
                    self.note(answered.as_ref().ok());
                    return answered;
                }
            };
            let Some(pause) = pauses.next() else {
                *self.unanswered.lock().expect("no panic holds it") = Some((claim.clone(), request));
                return Err(error);
            };
            tokio::time::sleep(pause).await;
            first = false;
        }
    }

    /// A claim that found nothing is as good as a count, and saves a separate request.
    fn note(&self, claimed: Option<&Claimed>) {
        let empty_for = claimed.filter(|claimed| claimed.items.is_empty()).map(|claimed| claimed.next_due_in.unwrap_or(EMPTY_FOR));
        let until = empty_for.filter(|wait| !wait.is_zero()).map(|wait| Instant::now() + wait.min(EMPTY_FOR));
        *self.empty_until.lock().expect("no panic holds it") = until;
    }

    /// Gets the rows that an earlier claim took without our receiving its response. Rows beyond the current limit are released.
    async fn ask_for_unanswered(&self, claim: &Claim) -> Result<Option<Claimed>> {
        let earlier = self.unanswered.lock().expect("no panic holds it").take();
        let Some((earlier, request)) = earlier.filter(|(earlier, _)| is_alike(earlier, claim)) else { return Ok(None) };
        let mut claimed = self.ask(&earlier, request, false).await?;
        if claimed.items.is_empty() {
            return Ok(None);
        }
        let surplus = claimed.items.split_off(claimed.items.len().min(usize::try_from(claim.limit).unwrap_or(0)));
        if !surplus.is_empty() {
            let held: Vec<Held> = surplus.iter().map(|item| item.held()).collect();
            self.release(&held).await?;
        }
        Ok(Some(claimed))
    }
}

/// Whether the server may have acted all the same: there was no response at all, or one from a proxy in between.
fn is_unanswered(error: &Error) -> bool {
    matches!(error, Error::Remote { status: None | Some(502 | 504 | 520..=530), transient: true, .. })
}

/// Whether both claims would get the same rows.
fn is_alike(one: &Claim, other: &Claim) -> bool {
    one.agent == other.agent
        && one.owner == other.owner
        && one.kinds == other.kinds
        && one.started == other.started
        && one.hold == other.hold
        && one.early == other.early
}

#[async_trait]
impl Transport for WireQueue {
    fn queue(&self) -> &str {
        &self.name
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed> {
        if claim.limit < 1 {
            return Ok(Claimed::default());
        }
        let claim = &Claim { limit: claim.limit.min(MOST_ROWS), ..claim.clone() };
        // A caller that passes a request id may be repeating the request, unless it says otherwise.
        if let Some(request) = claim.request {
            return self.ask(claim, request, claim.first).await;
        }
        if let Some(claimed) = self.ask_for_unanswered(claim).await? {
            return Ok(claimed);
        }
        self.ask(claim, Uuid::new_v4(), true).await
    }

    async fn start(&self, held: &[Held]) -> Result<Vec<Answer>> {
        act!(self, held("start", held))
    }

    async fn progress(&self, held: &Held, progress: &Progress) -> Result<(Answer, Duration)> {
        act!(self, progress(held, progress))
    }

    async fn complete(&self, done: &[Completion]) -> Result<Vec<Answer>> {
        act!(self, complete(done))
    }

    async fn fail(&self, held: &Held, failure: &Failure) -> Result<Answer> {
        act!(self, fail(held, failure))
    }

    async fn release(&self, held: &[Held]) -> Result<Vec<Answer>> {
        act!(self, held("release", held))
    }

    async fn snooze(&self, held: &Held, by: Duration) -> Result<Answer> {
        act!(self, snooze(held, by))
    }

    async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        act!(self, cancel(keys, reason))
    }

    async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>> {
        act!(self, explain(key, owner))
    }

    async fn ended(&self, held: &[Held]) -> Result<Vec<Held>> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        match act!(self, ended(held)) {
            // Rows that cannot be seen are not judged. Their holder learns of the loss at its next act.
            Err(Error::Remote { status: Some(401 | 403 | 404 | 406), code: Some(code), .. })
                if matches!(code.as_str(), "42501" | "PGRST205" | "PGRST106") =>
            {
                Ok(Vec::new())
            }
            other => other,
        }
    }

    async fn waiting(&self, claim: &Claim) -> Result<Option<Waiting>> {
        if self.empty_until.lock().expect("no panic holds it").is_some_and(|until| until > Instant::now()) {
            return Ok(Some(Waiting::default()));
        }
        match &self.acts {
            Acts::Native(_) => Routes { http: &self.http, queue: &self.name }.waiting(claim).await,
            Acts::Rpc(_) => Ok(None),
        }
    }

    fn has_owners(&self) -> bool {
        match &self.acts {
            Acts::Native(known) => known.owners,
            Acts::Rpc(shape) => shape.owner.is_some(),
        }
    }

    fn has_kinds(&self) -> bool {
        match &self.acts {
            Acts::Native(known) => known.kinds,
            Acts::Rpc(shape) => shape.kind.is_some(),
        }
    }

    fn listen(&self) -> Option<Box<dyn Push>> {
        let channel = match &self.acts {
            Acts::Native(_) => Channel::of_queue(&self.name),
            Acts::Rpc(shape) => Channel::table(shape),
        };
        Some(Box::new(self.socket.follow(channel)))
    }
}
