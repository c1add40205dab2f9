//! `gleaner migrate --cron`: the systems' sweeps, for databases with pg_cron.

use anyhow::Result;
use gleaner::migrate::{register as register_all, schedules, systems};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::App;
use crate::output::{GOOD, paint};

pub(super) async fn register(app: &App, client: &Client) -> Result<Value> {
    let all = schedules(&systems(client).await?)?;
    if register_all(client, &all).await? {
        for one in &all {
            app.out.line(format!("{}  {}  {}  {}", paint(GOOD, "scheduled"), one.name, one.schedule, one.command));
        }
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        return Ok(json!({"registered": true, "schedules": names}));
    }
    app.out.line(
        "pg_cron is not installed in this database, so no sweeps were registered.\n\
         Nothing needs them: an item whose holder is gone becomes due by itself.",
    );
    Ok(json!({"registered": false, "schedules": []}))
}
