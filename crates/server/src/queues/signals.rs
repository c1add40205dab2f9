//! A realtime channel that is notified of work in a queue: `"config": {"gleaner": {"queue": "jobs"}}`.
//!
//! An agent is notified of new work even if its key lets it see only the rows it holds.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use gleaner_http::{Caller, Role};
use gleaner_supabase::realtime::{Signal, Signals};
use serde_json::{Value, json};

use super::Queues;

impl Signals for Queues {
    fn asked<'a>(&'a self, config: &'a Value, caller: &'a Caller) -> BoxFuture<'a, Result<Option<Signal>, String>> {
        async move {
            let Some(queue) = config.pointer("/gleaner/queue").and_then(Value::as_str) else { return Ok(None) };
            if matches!(caller, Caller::Token { role: Role::Anon, .. }) {
                return Err("Unauthorized: sign in, or use a key of `gleaner keys add`, to be notified of work".into());
            }
            let seen = self.follow(queue).await.map_err(|error| error.to_string())?;
            Ok(Some(Signal { name: queue.to_owned(), seen, event: "work", reply_key: "gleaner", payload: json!({"queue": queue}) }))
        }
        .boxed()
    }

    fn raised<'a>(&'a self, name: &'a str, seen: u64) -> BoxFuture<'a, u64> {
        self.notified(name, seen).boxed()
    }
}
