//! The acts over HTTP, one file each. A stale lease changes nothing. A request for one row gets 409 or 410; a request for
//! many rows gets a result for each row.

/// Runs an act of the queue on behalf of the caller, in a transaction of its own.
macro_rules! act {
    ($queues:expr, $caller:expr, $queue:expr, $tenant:expr, |$acts:ident, $transaction:ident| $act:expr) => {{
        let known = $queues.acts(&$queue).await.map_err(|error| crate::queues::failure::refuse(&$caller, &error))?;
        let tenant: Option<crate::queues::acts::rows::Text> = $tenant;
        crate::queues::transaction::with_caller(&$queues.shared.pool, &$caller, |transaction| {
            ::futures_util::FutureExt::boxed(async move {
                let mut $acts = ::gleaner::Acts::clone(&known);
                let $transaction = &**transaction;
                if let Some(tenant) = tenant {
                    $acts = $acts.within($transaction, tenant.to_string()).await?;
                }
                $act
            })
        })
        .await
        .map_err(|error: ::gleaner::Error| crate::queues::failure::refuse(&$caller, &error))?
    }};
}

pub(crate) mod assign;
pub(crate) mod bury;
pub(crate) mod cancel;
pub(crate) mod complete;
pub(crate) mod ended;
pub(crate) mod enqueue;
pub(crate) mod explain;
pub(crate) mod fail;
pub(crate) mod list;
pub(crate) mod pause;
pub(crate) mod progress;
pub(crate) mod release;
pub(crate) mod requeue;
pub(crate) mod reschedule;
pub(crate) mod rows;
pub(crate) mod snooze;
pub(crate) mod start;

use self::rows::Text;

/// Keys as the engine takes them.
fn keys(keys: &[Text]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

pub(crate) fn texts(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}
