//! `gleaner items …`: shows items, and an operator's operations on them.

mod act;
mod explain;
mod list;
mod show;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::App;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner items list jobs --state failed
  gleaner items show jobs 42
  gleaner items explain jobs 42             why it is not claimed, and when it will be
  gleaner items requeue jobs 42 43          try them again now")]
pub(crate) enum Command {
    List(list::Args),
    Show(show::Args),
    Explain(explain::Args),
    Requeue(act::Requeue),
    Cancel(act::Cancel),
    Bury(act::Bury),
    Assign(act::Assign),
}

pub(crate) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::List(args) => list::run(app, args).await,
        Command::Show(args) => show::run(app, args).await,
        Command::Explain(args) => explain::run(app, args).await,
        Command::Requeue(args) => act::requeue(app, args).await,
        Command::Cancel(args) => act::cancel(app, args).await,
        Command::Bury(args) => act::bury(app, args).await,
        Command::Assign(args) => act::assign(app, args).await,
    }
}
