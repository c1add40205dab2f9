//! `gleaner keys …`: keys of programs.

mod add;
mod list;
mod revoke;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::App;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner keys add whisper --queue activities --kind call     for one agent, which sees only what it holds
  gleaner keys list
  gleaner keys revoke whisper

The two keys of the whole project are in `gleaner status -o env`.")]
pub(crate) enum Command {
    Add(add::Args),
    List(list::Args),
    Revoke(revoke::Args),
}

pub(crate) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::Add(args) => add::run(app, args).await,
        Command::List(args) => list::run(app, args).await,
        Command::Revoke(args) => revoke::run(app, args).await,
    }
}
