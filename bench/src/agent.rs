//! The overhead of the agent's runtime over the engine: with one and four processes, on the database and over HTTP.

mod crowd;
mod drain;
mod idle;
mod pickup;

use anyhow::Result;

use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

pub(crate) use self::crowd::{At, Crowd, Task, become_agents};

pub(crate) async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let serving = Serving::start(stage, true).await?;
    drain::measure(stage, report, &serving).await?;
    pickup::measure(stage, report, &serving).await?;
    idle::measure(stage, report, &serving).await?;
    serving.stop().await
}
