//! `gleaner down`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use gleaner_postgres::Stopped;
use serde_json::json;

use crate::App;

/// Stop what `up` started; the data stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner down
  GLEANER_HOME=~/second gleaner down        the one with that home
  gleaner down --timeout 300                wait longer for a large shutdown")]
pub(crate) struct Args {
    /// Seconds to wait
    #[arg(long, default_value_t = 90, value_name = "SECONDS")]
    timeout: u64,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    if app.target.given().is_some() {
        bail!("DATABASE_URL is set, and that database is not ours to stop\n  Unset it to stop the private PostgreSQL");
    }
    let home = app.target.home()?;
    let stopped = gleaner_postgres::down(&home, Duration::from_secs(args.timeout)).await?;
    let (pid, text) = match stopped {
        Stopped::Nothing => (None, format!("Nothing was running in {}.", home.path().display())),
        Stopped::Parent(pid) => {
            (Some(pid), format!("Stopped (pid {pid}). The data stays in {}; `gleaner up` starts again.", home.path().display()))
        }
        Stopped::Server(pid) => (
            Some(pid),
            format!("Stopped a PostgreSQL (pid {pid}) that had outlived its parent. The data stays in {}.", home.path().display()),
        ),
    };
    app.out.json(&json!({"stopped": pid.is_some(), "pid": pid, "home": home.path()}));
    app.out.line(text);
    Ok(ExitCode::SUCCESS)
}
