//! The load of idle agents on the database, for different numbers of agents.

use std::time::Duration;

use anyhow::Result;

use super::crowd::{At, Crowd, Task};
use crate::quiet;
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;
use crate::wire::subscribers::raise_limit;

/// Agents in one process.
const IN_ONE: usize = 250;

pub(super) async fn measure(stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
    stage.clear().await?;
    raise_limit()?;
    for agents in [1, 10, 1000] {
        let mut crowds = Vec::new();
        for first in (0..agents).step_by(IN_ONE) {
            crowds.push(Crowd::gather(&At::server(serving), IN_ONE.min(agents - first), Task::Idle).await?);
        }
        // After the first polls, when the interval is that of agents that have been idle for long.
        tokio::time::sleep(Duration::from_secs(if stage.quick { 5 } else { 65 })).await;
        let statements = quiet::statements_per_minute(stage, stage.seconds(120).max(30)).await?;
        report.figure(format!("{agents} idle agents on one server, statements"), statements, "/min");
        for crowd in crowds {
            crowd.end().await?;
        }
    }
    Ok(())
}
