//! How many statements of one caller run at once. A regular expression or a function may burn time up to the limit of its role: many
//! of them must not take every connection from other callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use gleaner_http::WireError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use super::context::Context;

/// The connections that callers share, and what one of them may have.
#[derive(Debug)]
pub(super) struct Shares {
    /// All callers without a person, together: they cannot be told apart.
    anonymous: Arc<Semaphore>,
    each: usize,
    /// Those who run something at this moment.
    people: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

impl Shares {
    /// Of so many connections: a quarter for anonymous callers, half for one person. The service key is trusted with all.
    pub(super) fn of(connections: usize) -> Self {
        let part = |of: usize| (connections / of).max(1);
        Self { anonymous: Arc::new(Semaphore::new(part(4))), each: part(2), people: Mutex::default() }
    }

    /// Waits until the caller runs fewer statements than its share.
    pub(super) async fn enter(&self, context: &Context, within: Duration) -> Result<Option<OwnedSemaphorePermit>, WireError> {
        let share = match context.person {
            Some(person) => self.of_person(person),
            None if context.is_anonymous() => Arc::clone(&self.anonymous),
            None => return Ok(None),
        };
        match tokio::time::timeout(within, share.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            _ => Err(WireError::no_connection_in_time().details("Too many requests of this caller run at once")),
        }
    }

    fn of_person(&self, person: Uuid) -> Arc<Semaphore> {
        let mut people = self.people.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = people.get(&person).and_then(Weak::upgrade) {
            return share;
        }
        people.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.each));
        people.insert(person, Arc::downgrade(&share));
        share
    }
}
