//! What the engine costs, as ratios to raw PostgreSQL in the same run: these machines drift, so only ratios mean anything.
//!
//! ```text
//! make bench                                  everything
//! make bench BENCH_ARGS='--quick'             smaller tables, shorter runs
//! make bench BENCH_ARGS='--only drain,pinned' some of it
//! ```

mod agent;
mod asking;
mod backlog;
mod drain;
mod enqueue;
mod idle;
mod ingest;
mod peer;
mod pickup;
mod pinned;
mod quiet;
mod raw;
mod report;
mod serving;
mod stage;
mod wire;

use anyhow::Result;
use clap::Parser;

use crate::report::Report;
use crate::stage::Stage;

#[derive(Debug, Parser)]
#[command(about = "Measures the engine against raw PostgreSQL in the same run", after_help = peer::HINT)]
struct Arguments {
    /// Measure a database of yours instead of a private server. It is migrated, and its jobs and activities are deleted.
    #[arg(long, env = "GLEANER_BENCH_URL")]
    url: Option<String>,
    /// Smaller tables and shorter runs.
    #[arg(long)]
    quick: bool,
    /// Only these: enqueue, drain, pickup, backlog, pinned, idle, ingest, wire, agent.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
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
    let stage = Stage::set(arguments.url.as_deref(), arguments.quick).await?;
    let mut report = Report::new(&stage.version);
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|o| o == name);
    if wanted("enqueue") {
        enqueue::measure(&stage, &mut report).await?;
    }
    if wanted("drain") {
        drain::measure(&stage, &mut report).await?;
    }
    if wanted("pickup") {
        pickup::measure(&stage, &mut report).await?;
    }
    if wanted("backlog") {
        backlog::measure(&stage, &mut report).await?;
    }
    if wanted("pinned") {
        pinned::measure(&stage, &mut report).await?;
    }
    if wanted("idle") {
        idle::measure(&stage, &mut report).await?;
    }
    if wanted("ingest") {
        ingest::measure(&stage, &mut report).await?;
    }
    if wanted("wire") {
        wire::measure(&stage, &mut report).await?;
    }
    if wanted("agent") {
        agent::measure(&stage, &mut report).await?;
    }
    report.print();
    report.write(&arguments.json)?;
    println!("\nwritten to {}", arguments.json.display());
    stage.strike().await
}
