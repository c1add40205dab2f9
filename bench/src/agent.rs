//! What the agent's runtime adds to the engine: one and four processes, on the database and over the wire.

mod crowd;
mod drain;
mod idle;
mod pickup;

use anyhow::Result;

use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

pub use self::crowd::{Task, become_agents};

pub async fn measure(stage: &Stage, report: &mut Report) -> Result<()> {
    let serving = Serving::start(stage, true).await?;
    drain::measure(stage, report, &serving).await?;
    pickup::measure(stage, report, &serving).await?;
    idle::measure(stage, report, &serving).await?;
    serving.stop().await
}
