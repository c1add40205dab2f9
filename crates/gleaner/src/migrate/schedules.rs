//! Sweeps of a system, from its `cron.toml`. They set the status back to ready for people who read the table. A row whose holder
//! died becomes due without them.

use serde::Deserialize;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::error::{Error, Result};
use crate::files;

/// One sweep.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Its name in the scheduler.
    pub name: String,
    /// In cron syntax.
    pub schedule: String,
    /// The SQL that is run.
    pub command: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schedule: Vec<Schedule>,
}

/// The sweeps of these systems.
pub fn schedules(systems: &[&str]) -> Result<Vec<Schedule>> {
    let mut all = Vec::new();
    for system in systems {
        for (name, text) in files::within(&format!("systems/{system}"), "toml").into_iter().filter(|(n, _)| n.ends_with("/cron.toml")) {
            let file: File = toml::from_str(text).map_err(|source| Error::Syntax { file: name.into(), source })?;
            all.extend(file.schedule);
        }
    }
    Ok(all)
}

/// Registers them with pg_cron. Returns false if this database has no pg_cron; then there is nothing to do.
pub async fn register(client: &impl GenericClient, schedules: &[Schedule]) -> Result<bool> {
    let rows = client
        .query_typed("select to_regprocedure('cron.schedule(text, text, text)') is not null", &[])
        .await
        .map_err(Error::doing("look for pg_cron"))?;
    if !rows[0].get::<_, bool>(0) {
        return Ok(false);
    }
    for one in schedules {
        // Scheduling an existing name replaces it.
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
