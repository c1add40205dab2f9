//! The `gleaner` command. This file is its table of contents: one file per subcommand, under `commands/`.
//!
//! - [`target`]: which database a command uses; [`serving`]: where our server listens; [`failure`]: how errors are printed.
//! - [`output`]: words, JSON and colours; [`table`]: aligned columns; [`words`]: times and texts for people.

mod commands;
mod failure;
mod output;
mod serving;
mod signals;
mod table;
mod target;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{
    agent, attach, channels, completions, contacts, detach, down, dumps, enqueue, followups, items, keys, logs, migrate, prune, queues,
    read_document, recover, replay, reset, runs, serve, sql, status, up, users, work,
};
use output::Output;
use target::Target;

/// Turns any PostgreSQL table into a durable work queue.
#[derive(Debug, Parser)]
#[command(
    name = "gleaner",
    version,
    max_term_width = 110,
    after_help = "\
Examples:
  gleaner up                                          start a private PostgreSQL and a server
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
    /// Print results and errors only
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Log more; twice logs still more
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
    /// List the items of a queue, and act on them
    #[command(subcommand)]
    Items(items::Command),
    /// List activities without a contact, and link them
    #[command(subcommand)]
    Contacts(contacts::Command),
    /// Schedule messages to people, and cancel them
    #[command(subcommand)]
    Followups(followups::Command),
    /// Add documents and notes, and see what agents made of them
    #[command(subcommand)]
    Dumps(dumps::Command),
    /// Replay recordings in a browser, and see how it went
    #[command(subcommand)]
    Runs(runs::Command),
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
    /// Manage the users who can sign in
    #[command(subcommand)]
    Users(users::Command),
    /// Make and revoke the keys of programs
    #[command(subcommand)]
    Keys(keys::Command),
    Completions(completions::Args),
    #[command(hide = true)]
    ReadDocument(read_document::Args),
}

/// What a command is given besides its arguments.
struct App {
    out: Output,
    target: Target,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Before there are threads: the limits of the reader are meant for it alone.
    if let Command::ReadDocument(args) = &cli.command {
        return read_document::run(args);
    }
    run(cli)
}

#[tokio::main]
async fn run(cli: Cli) -> ExitCode {
    let (out, target) = (Output::new(cli.globals.json, cli.globals.quiet), Target::new(cli.globals.database_url, cli.globals.home));
    // A server reports to its log.
    let to_log = match &cli.command {
        Command::Serve(_) => true,
        Command::Agent(args) => args.is_agent(),
        _ => false,
    };
    let verbose = if to_log { cli.globals.verbose.max(1) } else { cli.globals.verbose };
    output::start_tracing(verbose);
    let app = App { out, target };
    let done = match cli.command {
        Command::Up(args) => up::run(&app, args).await,
        Command::Down(args) => down::run(&app, args).await,
        Command::Status(args) => status::run(&app, args).await,
        Command::Logs(args) => logs::run(&app, args).await,
        Command::Reset(args) => reset::run(&app, args).await,
        Command::Migrate(args) => migrate::run(&app, args).await,
        Command::Attach(args) => attach::run(&app, args).await,
        Command::Detach(args) => detach::run(&app, args).await,
        Command::Sql(args) => sql::run(&app, args).await,
        Command::Queues(args) => queues::run(&app, args).await,
        Command::Items(command) => items::run(&app, command).await,
        Command::Contacts(command) => contacts::run(&app, command).await,
        Command::Followups(command) => followups::run(&app, command).await,
        Command::Dumps(command) => dumps::run(&app, command).await,
        Command::Runs(command) => runs::run(&app, command).await,
        Command::Enqueue(args) => enqueue::run(&app, args).await,
        Command::Work(args) => work::run(&app, args).await,
        Command::Agent(args) => agent::run(&app, *args).await,
        Command::Prune(args) => prune::run(&app, args).await,
        Command::Recover(args) => recover::run(&app, args).await,
        Command::Channels(command) => channels::run(&app, command).await,
        Command::Serve(args) => serve::run(&app, args).await,
        Command::Replay(args) => replay::run(&app, args).await,
        Command::Users(command) => users::run(&app, command).await,
        Command::Keys(command) => keys::run(&app, command).await,
        Command::Completions(args) => completions::run(&app, args).await,
        Command::ReadDocument(args) => Ok(read_document::run(&args)),
    };
    done.unwrap_or_else(|error| failure::tell(&error))
}
