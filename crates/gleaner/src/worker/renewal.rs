//! Extends the leases of handlers that run long, and notifies handlers when their row was taken away or cancelled.

use std::time::Duration;

use tokio::time::Instant;

use super::run::Run;
use crate::queue::{Held, Outcome, Progress};

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
            tell_ended(run).await;
        }
        renew(run).await;
    }
}

async fn renew(run: &Run) {
    // The database writes an extension only when less than half the hold is left. The lease of a row that waits for a handler is
    // not extended: another worker may claim it when the lease expires.
    let due = run.held.those(|row| row.begun.is_some() && (row.slept || row.extended.elapsed() > row.hold.mul_f64(0.55)));
    for held in due {
        match run.transport.progress(&held, &Progress::default()).await {
            Ok((answer, left)) => extended(run, &held, answer.outcome, left),
            Err(error) => tracing::debug!(%error, key = held.key, "could not extend a lease; trying again"),
        }
    }
}

fn extended(run: &Run, held: &Held, outcome: Outcome, left: Duration) {
    run.held.change(held, |row| {
        if outcome == Outcome::Done {
            row.extended = Instant::now();
            row.hold = left.max(Duration::from_secs(1));
            row.slept = false;
        } else {
            row.ended.send_replace(true);
        }
    });
}

/// Work that has run for a while may have been cancelled meanwhile. Quick work learns of it when it completes.
async fn tell_ended(run: &Run) {
    let watch = run.settings.watch;
    let running = run.held.those(|row| row.begun.is_some_and(|begun| begun.elapsed() >= watch) && !row.finished);
    if running.is_empty() {
        return;
    }
    match run.transport.ended(&running).await {
        Ok(ended) => run.tell(&ended),
        Err(error) => tracing::debug!(%error, "could not look whether running work was ended; trying again"),
    }
}
