//! The settings of an agent that flags can set.

use std::path::{Path, PathBuf};

use anyhow::Result;
use gleaner_agent::config::{Config, Sources};

use crate::App;

/// The settings as flags. They are read together with the file and the environment, which also says what is wrong with them.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct Flags {
    /// Read this file instead of agent.toml in the home
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Its name, where several run [default: agent]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The holder's name in the database [default: a new one at each start]
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    /// The server, Gleaner's own or a Supabase project
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Whose work comes first [default: the signed-in user]
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// Work only these of the pipelines' queues
    #[arg(long, value_name = "QUEUE,…")]
    queues: Option<String>,
    /// Work only these kinds
    #[arg(short, long, value_name = "KIND,…")]
    kinds: Option<String>,
    /// The pipeline file [default: built in, offline]
    #[arg(short, long, value_name = "FILE")]
    pipelines: Option<String>,
    /// Items in work at once, in all queues together [default: 4]
    #[arg(short, long, value_name = "N")]
    concurrency: Option<String>,
    /// Items claimed ahead [default: 0]
    #[arg(long, value_name = "N")]
    prefetch: Option<String>,
    /// How long running work may take to finish after Ctrl-C [default: 30s]
    #[arg(long, value_name = "TIME")]
    grace: Option<String>,
    /// How often to check whether running items were cancelled [default: 5s]
    #[arg(long, value_name = "TIME")]
    watch: Option<String>,
    /// hybrid, poll-only or push-only [default: hybrid]
    #[arg(long, value_name = "HOW")]
    wake: Option<String>,
    /// The first wait between polls without push [default: 5s]
    #[arg(long, value_name = "TIME")]
    poll_base: Option<String>,
    /// The longest wait without push [default: 30s]
    #[arg(long, value_name = "TIME")]
    poll_max: Option<String>,
    /// Factor by which each empty poll lengthens the wait [default: 1.5]
    #[arg(long, value_name = "FACTOR")]
    poll_factor: Option<String>,
    /// The first wait while push works [default: 30s]
    #[arg(long, value_name = "TIME")]
    poll_pushed_base: Option<String>,
    /// The longest wait while push works [default: 60s]
    #[arg(long, value_name = "TIME")]
    poll_pushed_max: Option<String>,
    /// Share of a wait added at random [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    poll_jitter: Option<String>,
    /// Makes the jitter repeatable
    #[arg(long, value_name = "NUMBER", hide = true)]
    poll_seed: Option<String>,
    /// Where the status page listens, on loopback; off is none [default: 127.0.0.1:7433, or the next free port]
    #[arg(long, value_name = "ADDRESS:PORT")]
    status: Option<String>,
}

/// Lays the flags over the environment and the file.
pub(super) fn load(app: &App, flags: &Flags) -> Result<Config> {
    let mut sources = Sources::of(app.target.home()?.path());
    sources.file.clone_from(&flags.config);
    // The option of every command already has the variable's value, unless the flag was given.
    let database_url = app.target.given().filter(|url| sources.variables.get("DATABASE_URL").is_none_or(|variable| variable != url));
    let all = [
        ("name", &flags.name),
        ("worker", &flags.worker),
        ("database_url", &database_url.map(str::to_owned)),
        ("url", &flags.url),
        ("owner", &flags.owner),
        ("queues", &flags.queues),
        ("kinds", &flags.kinds),
        ("pipelines", &flags.pipelines),
        ("concurrency", &flags.concurrency),
        ("prefetch", &flags.prefetch),
        ("grace", &flags.grace),
        ("watch", &flags.watch),
        ("wake", &flags.wake),
        ("poll.base", &flags.poll_base),
        ("poll.max", &flags.poll_max),
        ("poll.factor", &flags.poll_factor),
        ("poll.pushed_base", &flags.poll_pushed_base),
        ("poll.pushed_max", &flags.poll_pushed_max),
        ("poll.jitter", &flags.poll_jitter),
        ("poll.seed", &flags.poll_seed),
        ("status", &flags.status),
    ];
    sources.flags = all.into_iter().filter_map(|(key, value)| Some((key, value.clone()?))).collect();
    Ok(Config::load(sources)?)
}

/// The settings of a home for an agent of that database, whatever endpoint they name.
pub(crate) fn at(home: &Path, database_url: &str) -> Result<Config> {
    let mut sources = Sources::of(home);
    sources.flags = vec![("database_url", database_url.to_owned())];
    Ok(Config::load(sources)?)
}
