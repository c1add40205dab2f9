//! What the engine costs, as ratios to raw PostgreSQL in the same run: these machines drift, so only ratios mean anything.
//!
//! ```text
//! make bench                                  everything, about fifteen minutes
//! make bench BENCH_ARGS='--quick'             smaller tables, about three
//! make bench BENCH_ARGS='--only drain,pinned' some of it
//! ```

mod backlog;
mod drain;
mod enqueue;
mod idle;
mod pickup;
mod pinned;
mod raw;
mod report;
mod stage;

use anyhow::Result;
use clap::Parser;

use crate::report::Report;
use crate::stage::Stage;

#[derive(Debug, Parser)]
#[command(about = "Measures the engine against raw PostgreSQL in the same run")]
struct Arguments {
    /// Measure a database of yours instead of a private server. It is migrated, and its jobs and activities are deleted.
    #[arg(long, env = "GLEANER_BENCH_URL")]
    url: Option<String>,
    /// Smaller tables and shorter runs.
    #[arg(long)]
    quick: bool,
    /// Only these: enqueue, drain, pickup, backlog, pinned, idle.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "target/bench.json")]
    json: std::path::PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
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
    report.print();
    report.write(&arguments.json)?;
    println!("\nwritten to {}", arguments.json.display());
    stage.strike().await
}
