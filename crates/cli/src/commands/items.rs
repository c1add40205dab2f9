//! `gleaner items …`: looking at items, and an operator's acts on them.

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
pub enum Command {
    /// List items, by state, kind or owner
    List(list::Args),
    /// Show one item with all its columns and what was done to it
    Show(show::Args),
    /// Tell why an item is or is not claimable, and when it will be
    Explain(explain::Args),
    /// Let items be tried again, now, with all their attempts
    Requeue(act::Requeue),
    /// End items that nobody should work any more, running ones too
    Cancel(act::Cancel),
    /// Give up on items: they stay as dead letters
    Bury(act::Bury),
    /// Give items to another owner, or to everybody
    Assign(act::Assign),
}

pub async fn run(desk: &Desk, command: Command) -> Result<ExitCode> {
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
