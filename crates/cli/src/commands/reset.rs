//! `gleaner reset`.

use std::io::{IsTerminal as _, stdin};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::App;
use crate::output::{BAD, paint};

/// Delete the private PostgreSQL with all its data.
///
/// Refuses while it runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner down && gleaner reset             asks first
  gleaner reset --yes                       for scripts
  GLEANER_HOME=/tmp/try gleaner reset --yes")]
pub(crate) struct Args {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    if app.target.given().is_some() {
        bail!("DATABASE_URL is set, and that database is not ours to delete\n  Unset it to delete the private PostgreSQL");
    }
    let home = app.target.home()?;
    let now = gleaner_postgres::status(&home).await?;
    if let Some(pid) = now.parent_pid.or(now.server.map(|server| server.pid)) {
        bail!("it is running, pid {pid}: stop it first with `gleaner down`");
    }
    if !now.initialised {
        app.out.json(&json!({"reset": false, "home": now.home}));
        app.out.line(format!("There is no data in {}.", now.home.display()));
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !agreed(app, &now.data_directory.display().to_string())? {
        app.out.line("Nothing was deleted.");
        return Ok(ExitCode::FAILURE);
    }
    tokio::task::spawn_blocking(move || gleaner_postgres::reset(&home)).await.context("reset")??;
    app.out.json(&json!({"reset": true, "home": now.home}));
    app.out.line(format!("Deleted. `gleaner up` starts anew in {}.", now.home.display()));
    Ok(ExitCode::SUCCESS)
}

fn agreed(app: &App, data: &str) -> Result<bool> {
    if !stdin().is_terminal() {
        bail!("this deletes all data in {data}, and there is no terminal to ask: confirm with --yes");
    }
    app.out.note(format!("This deletes {} in {data}, for good.", paint(BAD, "all data")));
    app.out.note("Type yes to go on:");
    let mut answer = String::new();
    stdin().read_line(&mut answer).context("read the answer")?;
    Ok(answer.trim() == "yes")
}
