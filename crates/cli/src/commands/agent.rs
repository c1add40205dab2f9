//! `gleaner agent …`: compute that comes and goes.

pub mod mcp;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::Desk;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner agent mcp                     let the assistant that started this work the queues")]
pub enum Command {
    Mcp(mcp::Args),
}

pub async fn run(desk: &Desk, command: Command) -> Result<ExitCode> {
    match command {
        Command::Mcp(args) => mcp::run(desk, args).await,
    }
}
