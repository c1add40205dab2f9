//! What existing clients use: tables and functions over HTTP, changes over WebSocket, claims that wait.

mod claims;
mod realtime;
mod rest;
pub(crate) mod subscribers;

use anyhow::Result;

use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let serving = Serving::start(stage, false).await?;
    rest::measure(stage, report, &serving).await?;
    claims::measure(stage, report, &serving).await?;
    serving.stop().await?;

    let serving = Serving::start(stage, true).await?;
    realtime::measure(stage, report, &serving).await?;
    subscribers::measure(stage, report, &serving).await?;
    serving.stop().await
}
