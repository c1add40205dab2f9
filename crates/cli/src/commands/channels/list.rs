//! `gleaner channels list`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_intake::channels::Summary;

use super::tools::{Form, channels};
use crate::App;
use crate::output::{BAD, DIM, GOOD, WARN};
use crate::table::{Cell, Table};

/// List the channels.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels list
  gleaner channels list -o json | jq -r '.[] | select(.problems != []) | .name'")]
pub(crate) struct Args {
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let list = channels(app).await?.list().await?;
    out.json(&list);
    if list.is_empty() {
        out.line(
            "There are no channels yet. `gleaner channels providers` lists what can be connected, `gleaner channels add` connects it.",
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["NAME", "PROVIDER", "STATE", "OWNER", "KEY", "ID", "DETAIL"]);
    for channel in &list {
        table.row(vec![
            channel.name.clone().into(),
            channel.provider.clone().into(),
            state(channel),
            channel.owner.clone().unwrap_or_default().into(),
            Cell::styled(channel.ingestion_key.clone(), DIM),
            channel.id.to_string().into(),
            detail(channel).into(),
        ]);
    }
    out.listing(table.text());
    Ok(ExitCode::SUCCESS)
}

/// The first problem, else the reason for the state, else a warning.
fn detail(channel: &Summary) -> String {
    let said = channel.problems.first().or(channel.state_detail.as_ref()).or(channel.cautions.first());
    said.cloned().unwrap_or_default()
}

/// The most important thing to know about it.
pub(super) fn state(channel: &Summary) -> Cell {
    if !channel.is_active {
        Cell::styled("paused", DIM)
    } else if !channel.problems.is_empty() {
        Cell::styled("broken", BAD)
    } else if channel.state != "ready" {
        Cell::styled(channel.state.clone(), WARN)
    } else {
        Cell::styled("ready", GOOD)
    }
}
