//! `gleaner agent …`: the local processor.

mod login;
mod logout;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::Desk;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner agent login --url https://crm.example.com --anon-key sb_publishable_…
  gleaner agent logout")]
pub enum Command {
    Login(login::Args),
    Logout(logout::Args),
}

pub async fn run(desk: &Desk, command: Command) -> Result<ExitCode> {
    match command {
        Command::Login(args) => login::run(desk, args).await,
        Command::Logout(args) => logout::run(desk, args).await,
    }
}
