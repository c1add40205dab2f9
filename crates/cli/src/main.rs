//! The `gleaner` command. This file is its table of contents: one file per subcommand, under `commands/`.
//!
//! - [`place`]: which database a command speaks to; [`serving`]: where our server listens; [`failure`]: how errors are told.
//! - [`output`]: words, JSON and colours; [`table`]: aligned columns; [`words`]: times and texts for people.

mod commands;
mod failure;
mod output;
mod place;
mod serving;
mod signals;
mod table;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{
    agent, attach, channels, completions, contacts, detach, down, enqueue, items, keys, logs, migrate, prune, queues, recover, replay,
    reset, serve, sql, status, up, users, work,
};
use output::Output;
use place::Place;

/// Any PostgreSQL table as a fenced, self-healing, work-stealing queue.
#[derive(Debug, Parser)]
#[command(
    name = "gleaner",
    version,
    max_term_width = 110,
    after_help = "\
Examples:
  gleaner up                                          start a private PostgreSQL and leave it running
  gleaner enqueue jobs --kind mail '{\"to\": \"ada\"}'    put work in
  gleaner work jobs --exec './send-mail'              do it, with a program in any language
  gleaner items list jobs                             see what became of it
  gleaner agent status                                see what the agent of `gleaner up` does

Every command finds the database by itself: DATABASE_URL, else what `gleaner up` started in GLEANER_HOME."
)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// What every subcommand understands.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of every command")]
struct Globals {
    /// Use this database instead of the private one
    #[arg(long, global = true, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
    /// Where the private PostgreSQL is kept
    #[arg(long, global = true, env = "GLEANER_HOME", hide_env_values = true, value_name = "DIR")]
    home: Option<std::path::PathBuf>,
    /// Answer in JSON, for scripts
    #[arg(long, global = true)]
    json: bool,
    /// Say only what was asked for, and errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Tell what happens inside; twice tells more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    // The private PostgreSQL.
    Up(up::Args),
    Down(down::Args),
    Status(status::Args),
    Logs(logs::Args),
    Reset(reset::Args),
    // The schema, and tables as queues.
    Migrate(migrate::Args),
    Attach(attach::Args),
    Detach(detach::Args),
    Sql(sql::Args),
    // Queues and their items.
    Queues(queues::Args),
    /// Look at the items of a queue, and act on them
    #[command(subcommand)]
    Items(items::Command),
    /// Look at activities nobody was found for, and say who they came from
    #[command(subcommand)]
    Contacts(contacts::Command),
    Enqueue(enqueue::Args),
    Work(work::Args),
    // The local processor.
    Agent(Box<agent::Args>),
    Prune(prune::Args),
    Recover(recover::Args),
    /// Manage the channels through which activities arrive
    #[command(subcommand)]
    Channels(channels::Command),
    // What arrives.
    Serve(serve::Args),
    Replay(replay::Args),
    /// Say who may sign in
    #[command(subcommand)]
    Users(users::Command),
    /// Make and revoke the keys of programs
    #[command(subcommand)]
    Keys(keys::Command),
    Completions(completions::Args),
}

/// What a command is given besides its arguments.
struct Desk {
    out: Output,
    place: Place,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let (out, place) = (Output::new(cli.globals.json, cli.globals.quiet), Place::new(cli.globals.database_url, cli.globals.home));
    // A server has nobody to answer to but its log.
    let to_log = match &cli.command {
        Command::Serve(_) => true,
        Command::Agent(args) => args.is_agent(),
        _ => false,
    };
    let verbose = if to_log { cli.globals.verbose.max(1) } else { cli.globals.verbose };
    output::start_tracing(verbose);
    let desk = Desk { out, place };
    let done = match cli.command {
        Command::Up(args) => up::run(&desk, args).await,
        Command::Down(args) => down::run(&desk, args).await,
        Command::Status(args) => status::run(&desk, args).await,
        Command::Logs(args) => logs::run(&desk, args).await,
        Command::Reset(args) => reset::run(&desk, args).await,
        Command::Migrate(args) => migrate::run(&desk, args).await,
        Command::Attach(args) => attach::run(&desk, args).await,
        Command::Detach(args) => detach::run(&desk, args).await,
        Command::Sql(args) => sql::run(&desk, args).await,
        Command::Queues(args) => queues::run(&desk, args).await,
        Command::Items(command) => items::run(&desk, command).await,
        Command::Contacts(command) => contacts::run(&desk, command).await,
        Command::Enqueue(args) => enqueue::run(&desk, args).await,
        Command::Work(args) => work::run(&desk, args).await,
        Command::Agent(args) => agent::run(&desk, *args).await,
        Command::Prune(args) => prune::run(&desk, args).await,
        Command::Recover(args) => recover::run(&desk, args).await,
        Command::Channels(command) => channels::run(&desk, command).await,
        Command::Serve(args) => serve::run(&desk, args).await,
        Command::Replay(args) => replay::run(&desk, args).await,
        Command::Users(command) => users::run(&desk, command).await,
        Command::Keys(command) => keys::run(&desk, command).await,
        Command::Completions(args) => completions::run(&desk, args).await,
    };
    done.unwrap_or_else(|error| failure::tell(&error))
}
