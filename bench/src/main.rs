//! The overhead of the engine, as ratios to raw PostgreSQL in the same run. The speed of these machines drifts, so only ratios mean
//! anything.
//!
//! ```text
//! make bench                                                everything
//! make bench BENCH_ARGS='--quick'                           smaller tables, shorter runs
//! make bench BENCH_ARGS='--only drain,pinned'               some of it
//! make bench BENCH_ARGS='--only runtime --server stock'     through the library, with PostgreSQL's own settings
//! ```

mod agent;
mod asking;
mod attached;
mod backlog;
mod claim;
mod copied;
mod drain;
mod enqueue;
mod idle;
mod ingest;
mod orders;
mod peer;
mod pickup;
mod pinned;
mod quiet;
mod raw;
mod report;
mod rounds;
mod rows;
mod runtime;
mod server;
mod serving;
mod stage;
mod wire;

use anyhow::Result;
use clap::Parser;

use crate::report::Report;
use crate::rows::Row;
use crate::server::{Server, Servers};
use crate::stage::Stage;

const EXAMPLES: &str = "Examples:
  make bench                                               everything
  make bench BENCH_ARGS='--quick --only runtime-drain'     a first look at one row
  make bench BENCH_ARGS='--only claim,attached'            one-row claims; a table of one's own through Worker
  make bench BENCH_ARGS='--only runtime --server stock'    through the library, with PostgreSQL's own settings
  make bench BENCH_ARGS='--only drain --json drain.json'   figures as JSON, elsewhere";

#[derive(Debug, Parser)]
#[command(about = "Measures the engine against raw PostgreSQL in the same run", after_help = peer::HINT, after_long_help = format!("{EXAMPLES}\n\n{}", peer::HINT))]
struct Arguments {
    /// Measure a database of yours instead of a private server. It is migrated, and its jobs and activities are deleted.
    #[arg(long, env = "GLEANER_BENCH_URL")]
    url: Option<String>,
    /// Smaller tables and shorter runs.
    #[arg(long)]
    quick: bool,
    /// Only these rows, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    only: Vec<Row>,
    /// Which private server: with the settings of `gleaner up`, or with PostgreSQL's own. Without it, `both` for attached and the
    /// runtime-… rows, and `ours` for all others.
    #[arg(long, conflicts_with = "url")]
    server: Option<Servers>,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "target/bench.json")]
    json: std::path::PathBuf,
    /// Be that many subscribers instead: the benchmark starts itself so.
    #[arg(long, hide = true, requires = "at")]
    subscribe: Option<usize>,
    /// Be that many agents instead.
    #[arg(long, hide = true, requires_all = ["at", "task"])]
    agents: Option<usize>,
    #[arg(long, hide = true)]
    task: Option<agent::Task>,
    #[arg(long, hide = true)]
    at: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let (Some(many), Some(address)) = (arguments.subscribe, &arguments.at) {
        return wire::subscribers::subscribe(address, many).await;
    }
    if let (Some(many), Some(task), Some(at)) = (arguments.agents, arguments.task, &arguments.at) {
        return agent::become_agents(at, many, task).await;
    }
    let mut report = Report::default();
    if let Some(url) = &arguments.url {
        measure(Stage::given(url, arguments.quick).await?, &rows::wanted(&arguments.only), &mut report).await?;
    } else {
        for server in [Server::Ours, Server::Stock] {
            let rows = rows::wanted_on(server, arguments.server, &arguments.only);
            if !rows.is_empty() {
                measure(Stage::on(server, arguments.quick).await?, &rows, &mut report).await?;
            }
        }
    }
    report.print();
    report.write(&arguments.json)?;
    println!("\nwritten to {}", arguments.json.display());
    Ok(())
}

async fn measure(stage: Stage, rows: &[Row], report: &mut Report) -> Result<()> {
    report.on(&stage.name, &stage.version, stage.settings().await?);
    for row in rows {
        row.measure(&stage, report).await?;
    }
    stage.strike().await
}
