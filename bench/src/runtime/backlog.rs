//! Whether the speed of `Worker` depends on how many other jobs wait, compared with pgmq.

use anyhow::Result;

use super::library::{self, Setup};
use crate::drain::prepare_jobs;
use crate::peer::Peer;
use crate::report::Report;
use crate::rounds::Rounds;
use crate::stage::Stage;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let (waiting, sample) = (stage.rows(2_000_000), stage.rows(100_000));
    // A separate database for the long queue, which takes long to fill, so that the two can be measured in turns.
    let long = stage.beside().await?;
    let (peer, long_peer) = (Peer::set(stage, report).await?, Peer::set(&long, report).await?);
    prepare_jobs(&long, waiting).await?;
    if let Some(peer) = &long_peer {
        peer.clear().await?;
        peer.fill(waiting).await?;
    }
    let (mut empty, mut behind, mut peer_empty, mut peer_behind) =
        (Rounds::default(), Rounds::default(), Rounds::default(), Rounds::default());
    for _ in stage.rounds() {
        prepare_jobs(stage, sample).await?;
        empty.add(library::drain(stage, "jobs", Setup::default(), sample).await?);
        behind.add(library::drain(&long, "jobs", Setup::default(), sample).await?);
        // Refilled to the same length for the next round.
        long.fill_jobs(sample).await?;
        if let (Some(peer), Some(long_peer)) = (&peer, &long_peer) {
            peer.clear().await?;
            peer.fill(sample).await?;
            peer_empty.add(peer.drain_some(sample).await?);
            peer_behind.add(long_peer.drain_some(sample).await?);
            long_peer.fill(sample).await?;
        }
    }
    if let (Some(peer), Some(long_peer)) = (peer, long_peer) {
        peer.strike().await?;
        long_peer.strike().await?;
    }
    stage.alone().await?;
    report.figure(format!("Worker, {sample} jobs, nothing else there"), empty.median(), "/s");
    report.ratio(format!("Worker, {sample} of {waiting} jobs"), behind.median(), "/s", empty.median(), "empty", Some(0.9));
    if cfg!(feature = "peers") {
        report.figure(format!("pgmq, {sample} messages, nothing else there"), peer_empty.median(), "/s");
        report.ratio(format!("pgmq, {sample} of {waiting} messages"), peer_behind.median(), "/s", peer_empty.median(), "empty", None);
        report.ratio(format!("Worker, {sample} of {waiting} jobs"), behind.median(), "/s", peer_behind.median(), "pgmq", None);
    }
    Ok(())
}
