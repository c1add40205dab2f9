//! `gleaner agent status`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner_agent::status::client::{Error, Remote};
use serde_json::{Value, json};

use super::{Named, show};
use crate::Desk;

/// Tell what the agents of this machine do.
///
/// The exit code is 1 when none runs, or one is not well: fit for the health check of a container.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner agent status
  gleaner agent status laptop
  gleaner agent status --json | jq '.[].state'
  gleaner agent status -q || echo 'not well'")]
pub struct Args {
    #[command(flatten)]
    named: Named,
}

pub async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let home = desk.place.home()?;
    let mut all = Remote::all(home.path()).await;
    if all.is_empty() {
        desk.out.json(&json!([]));
        bail!(Error::Nobody { home: home.path().display().to_string() });
    }
    if let Some(name) = &args.named.name {
        let there = all.iter().map(|(remote, _)| remote.name().to_owned()).collect();
        all.retain(|(remote, _)| remote.name() == name);
        if all.is_empty() {
            bail!(Error::Unknown { name: name.clone(), there });
        }
    }
    let well = all.iter().all(|(_, view)| view["health"]["healthy"] == true);
    desk.out.json(&all.iter().map(|(remote, view)| with_url(remote, view)).collect::<Vec<_>>());
    let shown: Vec<String> = all.iter().map(|(remote, view)| show::lines(view, remote.url())).collect();
    desk.out.line(shown.join("\n\n"));
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn with_url(remote: &Remote, view: &Value) -> Value {
    let mut view = view.clone();
    view["url"] = json!(remote.url());
    view
}
