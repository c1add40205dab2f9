//! A plain attached table by its acts and through `Worker`, compared with the hand-written loop that keeps rows, on a copy of that
//! table.

use anyhow::Result;

use crate::copied::Copied;
use crate::orders::{self, ORDERS};
use crate::report::Report;
use crate::rounds::Rounds;
use crate::runtime::library::{self, Setup};
use crate::stage::Stage;
use crate::{drain, raw};

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let n = stage.rows(50_000);
    orders::set(stage).await?;
    let copied = Copied::make(stage, ORDERS).await?;
    for connections in [1, 2] {
        let (mut by_hand, mut by_act, mut by_worker) = (Rounds::default(), Rounds::default(), Rounds::default());
        for _ in stage.rounds() {
            orders::fill(stage, n).await?;
            copied.fill(stage).await?;
            by_hand.add(raw::drain_by(stage, &copied.claim(drain::BATCH, "*"), &copied.complete(), connections, n).await?);
            by_act.add(drain::drain(stage, ORDERS.queue, connections, None).await?);
            orders::fill(stage, n).await?;
            by_worker.add(library::drain(stage, ORDERS.queue, Setup { connections, ..Setup::default() }, n).await?);
        }
        let keep = by_hand.median();
        let aim = (connections == 1).then_some(0.7);
        report.figure(format!("orders, raw claim-and-keep, {connections} connections"), keep, "/s");
        report.ratio(format!("orders by acts, {connections} connections"), by_act.median(), "/s", keep, "claim-and-keep", None);
        report.ratio(format!("orders through Worker, {connections} connections"), by_worker.median(), "/s", keep, "claim-and-keep", aim);
    }
    copied.strike(stage).await?;
    orders::strike(stage).await
}
