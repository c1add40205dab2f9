//! `gleaner runs …`: recordings replayed in a browser, once for each line of their data.

mod cancel;
mod junit;
mod list;
mod outcome;
mod save;
mod show;
mod submit;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::App;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner runs submit order.json --csv people.csv --watch     replay a recording, once for each line
  gleaner runs list                                           how runs went
  gleaner runs show 1f0c… --junit > report.xml                for a build server
  gleaner runs cancel 1f0c…")]
pub(crate) enum Command {
    Submit(submit::Args),
    Save(save::Args),
    List(list::Args),
    Show(show::Args),
    Cancel(cancel::Args),
}

pub(crate) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::Submit(args) => submit::run(app, args).await,
        Command::Save(args) => save::run(app, args).await,
        Command::List(args) => list::run(app, args).await,
        Command::Show(args) => show::run(app, args).await,
        Command::Cancel(args) => cancel::run(app, args).await,
    }
}
