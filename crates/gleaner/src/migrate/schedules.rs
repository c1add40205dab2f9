//! Sweeps that a system's specification asks for, kept in `sql/systems/SYSTEM/cron.toml`. For people who look at the table and
//! for callers of the specs: a row whose holder died becomes due without them.

use serde::Deserialize;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::SYSTEMS;
use crate::error::{Error, Result};
use crate::files;

/// One sweep.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub name: String,
    /// As cron writes it.
    pub schedule: String,
    pub command: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schedule: Vec<Schedule>,
}

/// The sweeps of every system.
pub fn schedules() -> Result<Vec<Schedule>> {
    let mut all = Vec::new();
    for system in SYSTEMS {
        for (name, text) in files::within(&format!("systems/{system}"), "toml").into_iter().filter(|(n, _)| n.ends_with("/cron.toml")) {
            let file: File = toml::from_str(text).map_err(|source| Error::Syntax { file: name.into(), source })?;
            all.extend(file.schedule);
        }
    }
    Ok(all)
}

/// Registers them with pg_cron. False when this database has none; then there is nothing to do.
pub async fn register(client: &impl GenericClient, schedules: &[Schedule]) -> Result<bool> {
    let rows = client
        .query_typed("select to_regprocedure('cron.schedule(text, text, text)') is not null", &[])
        .await
        .map_err(Error::doing("look for pg_cron"))?;
    if !rows[0].get::<_, bool>(0) {
        return Ok(false);
    }
    for one in schedules {
        // Scheduling a name again replaces it.
        client
            .query_typed(
                "select cron.schedule($1, $2, $3)",
                &[(&one.name, Type::TEXT), (&one.schedule, Type::TEXT), (&one.command, Type::TEXT)],
            )
            .await
            .map_err(Error::doing(format!("schedule {}", one.name)))?;
    }
    Ok(true)
}
