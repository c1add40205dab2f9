//! `gleaner items …`: shows items, and an operator's operations on them.

mod act;
mod explain;
mod list;
mod show;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::Desk;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner items list jobs --state failed
  gleaner items show jobs 42
  gleaner items explain jobs 42             why nobody takes it, and when somebody will
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

pub(crate) async fn run(desk: &Desk, command: Command) -> Result<ExitCode> {
    match command {
        Command::List(args) => list::run(desk, args).await,
        Command::Show(args) => show::run(desk, args).await,
        Command::Explain(args) => explain::run(desk, args).await,
        Command::Requeue(args) => act::requeue(desk, args).await,
        Command::Cancel(args) => act::cancel(desk, args).await,
        Command::Bury(args) => act::bury(desk, args).await,
        Command::Assign(args) => act::assign(desk, args).await,
    }
}
