//! Shows life for handlers that run long, and tells them when their row was taken away or cancelled.

use std::time::Duration;

use tokio::time::Instant;

use super::held::Id;
use super::shift::Shift;
use crate::queue::Outcome;

/// Never ends by itself.
pub(super) async fn keep(shift: &Shift) {
    let watch = shift.settings.watch;
    let mut slept = shift.sleep.subscribe();
    let mut watched = Instant::now();
    loop {
        shift.held.occupied().await;
        // Often enough for the shortest hold.
        let shortest = shift.held.shortest_hold().map_or(Duration::MAX, |hold| hold / 10);
        let wait = watch.min(Duration::from_millis(500)).min(shortest).max(Duration::from_millis(20));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = slept.changed() => {}
        }
        shift.look_after_sleep().await;
        if watched.elapsed() >= watch {
            watched = Instant::now();
            tell_ended(shift).await;
        }
        show_life(shift).await;
    }
}

async fn show_life(shift: &Shift) {
    // The database writes an extension only when less than half the hold is left. A row that waits for a handler shows no life: it
    // has none, and whoever is free may have it when its time is over.
    let due = shift.held.ids(|row| row.begun.is_some() && (row.slept || row.extended.elapsed() > row.hold.mul_f64(0.55)));
    for id in due {
        match shift.transport.progress(&id.0, id.1, None, None, None).await {
            Ok((answer, left)) => extended(shift, &id, answer.outcome, left),
            Err(error) => tracing::debug!(%error, key = id.0, "could not show life; trying again"),
        }
    }
}

fn extended(shift: &Shift, id: &Id, outcome: Outcome, left: Duration) {
    shift.held.change(id, |row| {
        if outcome == Outcome::Done {
            row.extended = Instant::now();
            row.hold = left.max(Duration::from_secs(1));
            row.slept = false;
        } else {
            row.ended.send_replace(true);
        }
    });
}

/// Work that has run for a while may have been cancelled under its hands; quick work learns it when it completes.
async fn tell_ended(shift: &Shift) {
    let watch = shift.settings.watch;
    let running = shift.held.ids(|row| row.begun.is_some_and(|begun| begun.elapsed() >= watch) && !row.finished);
    if running.is_empty() {
        return;
    }
    let asked: Vec<(&str, i64)> = running.iter().map(|(key, lease)| (key.as_str(), *lease)).collect();
    match shift.transport.ended(&asked).await {
        Ok(ended) => shift.tell(&ended),
        Err(error) => tracing::debug!(%error, "could not look after running work; trying again"),
    }
}
