//! `gleaner users …`: who may sign in.

mod add;
mod disable;
mod link;
mod list;
mod passwd;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use gleaner_supabase::auth::Password;
use gleaner_supabase::auth::people::Trouble;

use crate::App;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner users add ada@example.com --admin             with a password that is shown once
  gleaner users invite bob@example.com                  prints a link with which Bob chooses his own
  gleaner users list
  gleaner users disable bob@example.com --assign-to ada@example.com

On a Supabase project users are kept by the platform, and these commands say so.")]
pub(crate) enum Command {
    Add(add::Args),
    List(list::Args),
    Passwd(passwd::Args),
    Disable(disable::Disable),
    Enable(disable::Enable),
    Invite(link::Invite),
    Reset(link::Reset),
}

pub(crate) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::Add(args) => add::run(app, args).await,
        Command::List(args) => list::run(app, args).await,
        Command::Passwd(args) => passwd::run(app, args).await,
        Command::Disable(args) => disable::disable(app, args).await,
        Command::Enable(args) => disable::enable(app, args).await,
        Command::Invite(args) => link::invite(app, args).await,
        Command::Reset(args) => link::reset(app, args).await,
    }
}

/// Errors of the database are passed on unwrapped, because they have their own messages.
fn as_error(trouble: Trouble) -> anyhow::Error {
    match trouble {
        Trouble::Database(error) => error.into(),
        other => other.into(),
    }
}

/// Where a new password comes from. Never an argument: other users of the machine see those.
#[derive(Debug, clap::Args)]
struct Source {
    /// Read the password from standard input; otherwise a random one is made and shown
    #[arg(long)]
    password_stdin: bool,
}

impl Source {
    /// The password, and whether it was generated here and has to be shown.
    fn password(&self) -> Result<(Password, bool)> {
        if !self.password_stdin {
            return Ok((Password::random(), true));
        }
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).context("read the password from standard input")?;
        let password = line.trim_end_matches(['\n', '\r']);
        if password.is_empty() {
            bail!("there is no password on standard input\n  Write it there: printf %s \"$PASSWORD\" | gleaner users … --password-stdin");
        }
        Ok((Password::new(password), false))
    }
}
