//! `gleaner agent …`: the local processor, and how to speak to one that runs.

mod config;
mod login;
mod logout;
mod mcp;
mod pause;
mod resume;
mod run;
mod show;
mod status;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use gleaner_agent::status::client::Remote;

use crate::App;

pub(crate) use config::at;

/// Run an agent on this machine: claim items, process them, write results back.
///
/// Works its owner's items first, then items without an owner, then items that others left waiting longer than they allow. An agent
/// may stop at any time: another one takes over the work that it held. Without a subcommand it runs, as `gleaner agent run` does.
///
/// Where: the database of DATABASE_URL; else the server of SUPABASE_URL, with SUPABASE_ANON_KEY and the session of `gleaner agent login`, or
/// with SUPABASE_SERVICE_ROLE_KEY; else what `gleaner up` runs in GLEANER_HOME. What is done: a file of pipelines, or the built-in ones,
/// which work offline.
///
/// Every flag is also a variable and a key of agent.toml in GLEANER_HOME: --poll-base, GLEANER_AGENT_POLL_BASE, and base under [poll].
/// Flags win over variables, variables over the file. `gleaner agent run --print-config` shows what applies.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  gleaner agent                                       work what `gleaner up` has, until Ctrl-C
  gleaner agent --owner 7 --pipelines calls.toml      owner 7 first, with pipelines of your own
  gleaner agent run --until-empty                     work what is due, then end
  gleaner agent run --print-config                    show every setting, and where it came from
  gleaner agent status                                what it does now, and where its page is
  gleaner agent pause && gleaner agent resume
  gleaner agent mcp                                   let an assistant work the queues"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    // Agents that run.
    Status(status::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Watch(watch::Args),
    // Who it works for.
    Login(login::Args),
    Logout(logout::Args),
    // Other ways to speak to the queue.
    Mcp(mcp::Args),
}

impl Args {
    /// Whether this process will be an agent, which reports to its log.
    pub(crate) fn is_agent(&self) -> bool {
        matches!(self.command, None | Some(Command::Run(_)))
    }
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    match args.command.unwrap_or_else(|| Command::Run(Box::new(args.run))) {
        Command::Run(args) => run::run(app, *args).await,
        Command::Status(args) => status::run(app, args).await,
        Command::Pause(args) => pause::run(app, args).await,
        Command::Resume(args) => resume::run(app, args).await,
        Command::Watch(args) => watch::run(app, args).await,
        Command::Login(args) => login::run(app, args).await,
        Command::Logout(args) => logout::run(app, args).await,
        Command::Mcp(args) => mcp::run(app, args).await,
    }
}

/// Which of the agents of this home.
#[derive(Debug, clap::Args)]
struct Named {
    /// Its name; needed only where several run
    name: Option<String>,
}

impl Named {
    async fn find(&self, app: &App) -> Result<Remote> {
        Ok(Remote::find(app.target.home()?.path(), self.name.as_deref()).await?)
    }
}
