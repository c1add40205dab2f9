//! Extends the leases of handlers that run long, and notifies handlers when their row was taken away or cancelled.

use std::time::Duration;

use tokio::time::Instant;

use super::held::{self, Row};
use super::run::Run;
use crate::queue::{Outcome, Progress};

/// Runs until it is aborted.
pub(super) async fn renew_leases(run: &Run) {
    let watch = run.settings.watch;
    let mut slept = run.sleep.subscribe();
    let mut watched = Instant::now();
    loop {
        run.held.occupied().await;
        // Often enough for the shortest hold.
        let shortest = run.held.shortest_hold().map_or(Duration::MAX, |hold| hold / 10);
        let wait = watch.min(Duration::from_millis(500)).min(shortest).max(Duration::from_millis(20));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = slept.changed() => {}
        }
        run.look_after_sleep().await;
        if watched.elapsed() >= watch {
            watched = Instant::now();
            notify_ended(run).await;
        }
        renew(run).await;
    }
}

async fn renew(run: &Run) {
    // The database writes an extension only when less than half the hold is left. The lease of a row that waits for a handler is
    // not extended: another worker may claim it when the lease expires.
    let due = run.held.those(|row| row.has_begun() && (row.slept || row.extended.elapsed() > row.hold.mul_f64(0.55)));
    for row in due {
        match run.transport.progress(&row.held, &Progress::default().hold(run.settings.hold)).await {
            Ok((answer, left)) => extended(&row, answer.outcome, left),
            Err(error) => tracing::debug!(%error, key = row.held.key, "could not extend a lease; trying again"),
        }
    }
}

fn extended(row: &Row, outcome: Outcome, left: Duration) {
    if outcome == Outcome::Done {
        let mut state = row.state();
        state.extended = Instant::now();
        state.hold = left.max(Duration::from_secs(1));
        state.slept = false;
    } else {
        row.end();
    }
}

/// Work that has run for a while may have been cancelled meanwhile. Quick work learns of it when it completes.
async fn notify_ended(run: &Run) {
    let watch = run.settings.watch;
    let running = run.held.those(|row| row.has_run(watch));
    if running.is_empty() {
        return;
    }
    match run.transport.ended(&held::held(&running)).await {
        Ok(ended) => held::named(&running, &ended).for_each(Row::end),
        Err(error) => tracing::debug!(%error, "could not check whether running work was ended; trying again"),
    }
}
