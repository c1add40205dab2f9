//! `Queue::enqueue` from many clients and in bulk, compared with pgmq's send.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::library::{self, job};
use crate::peer::Peer;
use crate::raw;
use crate::report::Report;
use crate::rounds::Rounds;
use crate::stage::Stage;

const CLIENTS: usize = 16;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let (n, seconds) = (stage.rows(100_000), if stage.quick { 1 } else { 3 });
    let items: Vec<_> = (0..n as u64).map(job).collect();
    let queue = library::jobs(&stage.url, CLIENTS).await?;
    let peer = Peer::set(stage, report).await?;
    let (mut single, mut bulk, mut their_single, mut their_bulk) =
        (Rounds::default(), Rounds::default(), Rounds::default(), Rounds::default());
    for _ in stage.rounds() {
        stage.clear().await?;
        let lasting = Duration::from_secs(seconds);
        let clients = (0..CLIENTS).map(|_| async {
            let (begun, mut sent) = (Instant::now(), 0);
            while begun.elapsed() < lasting {
                queue.enqueue(&items[..1]).await?;
                sent += 1;
            }
            anyhow::Ok(sent)
        });
        single.add(raw::rate(clients).await?);
        if let Some(peer) = &peer {
            their_single.add(peer.send(CLIENTS, seconds).await?);
        }
        stage.clear().await?;
        bulk.add(raw::rate(std::iter::once(async { Ok(queue.enqueue_copy(&items).await?) })).await?);
        if let Some(peer) = &peer {
            their_bulk.add(peer.send_batches(n).await?);
        }
    }
    let (one, many) = (format!("Queue::enqueue of one job, {CLIENTS} clients"), format!("Queue::enqueue_copy of {n} jobs"));
    if let Some(peer) = peer {
        peer.strike().await?;
        report.figure(format!("pgmq send, {CLIENTS} clients"), their_single.median(), "/s");
        report.ratio(one, single.median(), "/s", their_single.median(), "pgmq's send", Some(0.9));
        report.figure("pgmq send_batch, 1,000 at a time", their_bulk.median(), "/s");
        report.ratio(many, bulk.median(), "/s", their_bulk.median(), "pgmq's send_batch", None);
    } else {
        report.figure(one, single.median(), "/s");
        report.figure(many, bulk.median(), "/s");
    }
    Ok(())
}
