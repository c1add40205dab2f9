//! `gleaner agent run`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner::worker::Tally;
use gleaner_agent::agent::Agent;
use gleaner_agent::config::{Config, EndpointAt, Until};
use gleaner_postgres::Home;
use serde_json::json;

use super::config::{Flags, load};
use crate::App;
use crate::output::{self, BOLD, DIM, paint};
use crate::signals::Signals;
use crate::table::{Cell, Table};
use crate::words::count;

/// Claim work and process it, until Ctrl-C or SIGTERM.
///
/// After the first Ctrl-C it claims nothing new and lets running items finish, within the grace; the rest is released. The second
/// releases everything at once. Neither counts an attempt.
#[derive(Debug, clap::Args)]
// Also part of `gleaner agent` itself, whose group would have the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  gleaner agent run
  gleaner agent run --name second --concurrency 1     another one beside it
  gleaner agent run --queues activities --kinds note,email
  gleaner agent run --wake poll-only --poll-base 1s   through a pooler in transaction mode
  gleaner agent run --once                            work one item, then end
  gleaner agent run --print-config --json | jq -r '.[] | select(.from != \"default\") | .key'")]
pub(super) struct Args {
    /// End after one item, or when nothing is due
    #[arg(long)]
    once: bool,
    /// End when nothing is due
    #[arg(long, conflicts_with = "once")]
    until_empty: bool,
    /// Show every setting and where it came from, and end
    #[arg(long)]
    print_config: bool,
    #[command(flatten)]
    flags: Flags,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let mut config = load(app, &args.flags)?;
    if args.print_config {
        print(app, &config);
        return Ok(ExitCode::SUCCESS);
    }
    check_endpoint(&config.endpoint).await?;
    config.until = match (args.once, args.until_empty) {
        (true, _) => Until::Once,
        (_, true) => Until::Empty,
        _ => Until::Stopped,
    };
    let (ends, grace) = (config.until != Until::Stopped, config.grace);
    let mut signals = Signals::listen()?;
    output::end_orderly();
    let mut agent = if ends { Agent::start(config).await? } else { Agent::start_hosting(config).await? };
    begin(app, &agent);
    let tally = tokio::select! {
        tally = agent.wait() => tally?,
        () = signals.any() => {
            agent.begin_to_stop();
            let held = agent.running();
            if held > 0 {
                app.out.note(format!("Stopping: {} may finish within {} s; Ctrl-C again gives them back at once.", count(held as i64, "item"), grace.as_secs()));
            }
            tokio::select! {
                tally = agent.wait() => tally?,
                () = signals.any() => {
                    let released = agent.release_now().await;
                    app.out.note(format!("{} given back.", count(i128::from(released), "item")));
                    return Ok(ExitCode::from(130));
                }
            }
        }
    };
    end(app, &tally, ends);
    Ok(ExitCode::SUCCESS)
}

/// An agent waits for a database that is away. In a home where none was ever made there is nothing to wait for.
async fn check_endpoint(endpoint: &EndpointAt) -> Result<()> {
    let EndpointAt::Home(home) = endpoint else { return Ok(()) };
    let now = gleaner_postgres::status(&Home::at(home)?).await?;
    if !now.initialised && now.parent_pid.is_none() && now.server.is_none() {
        bail!(
            "there is nothing to work for: {} holds no database, and no session of a server\n  \
             Sign in to a server: gleaner agent login --url https://… --anon-key …\n  \
             Or start a database here with `gleaner up`, or set DATABASE_URL",
            home.display()
        );
    }
    Ok(())
}

fn begin(app: &App, agent: &Agent) {
    let (name, queues) = (agent.name(), agent.queues());
    app.out.json_line(&json!({"event": "begin", "name": name, "pid": std::process::id(), "url": agent.url(), "queues": queues}));
    app.out.line(format!("Agent {} works {}", paint(BOLD, &name), queues.join(", ")));
    if let Some(url) = agent.url() {
        app.out.line(format!("  page    {url}"));
    }
    app.out.line(paint(DIM, "Ctrl-C lets what runs finish; twice gives it back at once."));
}

fn end(app: &App, tally: &Tally, ends: bool) {
    let Tally { completed, failed, lost, released } = *tally;
    app.out.json_line(&json!({"event": "end", "completed": completed, "failed": failed, "lost": lost, "released": released}));
    if *tally == Tally::default() {
        return app.out.note(if ends { "Nothing is due." } else { "Nothing was taken." });
    }
    let parts = [(completed, "completed"), (failed, "failed"), (lost, "lost to a cancel or another agent"), (released, "given back")];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    app.out.note(format!("{}.", parts.join(", ")));
}

fn print(app: &App, config: &Config) {
    app.out.json(&config.effective());
    let mut table = Table::new(&["setting", "value", "from"]);
    for setting in config.effective() {
        let value = match &setting.value {
            Some(value) => Cell::new(value),
            None => Cell::styled(format!("({})", setting.otherwise), DIM),
        };
        let from = if setting.from == "default" { Cell::styled("default", DIM) } else { Cell::new(&setting.from) };
        table.row(vec![setting.key.into(), value, from]);
    }
    app.out.listing(table.text());
}
