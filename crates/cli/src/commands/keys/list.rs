//! `gleaner keys list`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_supabase::auth::api_keys;
use serde_json::Value;

use crate::App;
use crate::output::{BAD, DIM, GOOD};
use crate::table::{Cell, Table};
use crate::words::{member, moment, span};

/// List the keys of programs, revoked ones too.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner keys list
  gleaner keys list --json | jq -r '.[] | select(.last_used_at == null) | .name'    never used")]
pub(crate) struct Args {}

pub(super) async fn run(app: &App, _: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let keys = api_keys::list(&client).await?;
    app.out.json(&keys);
    let mut table = Table::new(&["NAME", "ROLE", "STATE", "KEY", "QUEUES", "KINDS", "USED", "EXPIRES"]);
    for key in &keys {
        let state = member(key, "state");
        let style = if state == "good" { GOOD } else { BAD };
        let used = key["used_seconds_ago"].as_f64().map_or_else(|| "never".to_owned(), |seconds| format!("{} ago", span(seconds)));
        table.row(vec![
            member(key, "name").into(),
            member(key, "role").into(),
            Cell::styled(state, style),
            Cell::styled(member(key, "hint"), DIM),
            names(&key["queues"]).into(),
            names(&key["kinds"]).into(),
            Cell::styled(used, DIM),
            key["expires_in_seconds"].as_f64().map(moment).unwrap_or_default().into(),
        ]);
    }
    if keys.is_empty() {
        app.out.line("There are no keys. `gleaner keys add NAME` makes one; `gleaner status -o env` has those of the project.");
    } else {
        app.out.listing(table.text());
    }
    Ok(ExitCode::SUCCESS)
}

fn names(list: &Value) -> String {
    let names: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    crate::words::harmless(&names.join(", "))
}
