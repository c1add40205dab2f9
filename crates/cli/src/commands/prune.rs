//! `gleaner prune`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use gleaner::Acts;
use serde_json::json;

use crate::App;
use crate::target::seconds;
use crate::words::count;

/// Delete finished items that are old enough.
///
/// Those that ended longer ago than the queue's retention, or than --older-than.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner prune jobs
  gleaner prune jobs --older-than '30 days'
  gleaner prune --all                       every queue, as far as its declaration says")]
pub(crate) struct Args {
    /// Name of the queue
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    queue: Option<String>,
    /// Every queue that declares when its work ended
    #[arg(long)]
    all: bool,
    /// How long ago the work must have ended, such as '30 days'
    #[arg(long, value_name = "TIME")]
    older_than: Option<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let older_than = match &args.older_than {
        Some(text) => Some(Duration::try_from_secs_f64(seconds(&client, text).await?).context("--older-than must not be negative")?),
        None => None,
    };
    let names = match args.queue {
        Some(name) => vec![name],
        None => gleaner::registry::list(&client)
            .await?
            .into_iter()
            .filter(|entry| entry.declaration.finished.is_some())
            .map(|entry| entry.name)
            .collect(),
    };
    let mut all = Vec::new();
    for name in names {
        let acts = Acts::of(&client, &name).await?;
        let keeps_all = older_than.is_none() && acts.declaration().retain.is_none();
        if keeps_all && !args.all && acts.declaration().finished.is_some() {
            bail!("queue {name} declares no `retain`, so its rows are kept for good\n  Say --older-than to delete finished ones anyway");
        }
        let pruned = acts.prune(&client, older_than).await?;
        all.push(json!({"queue": name, "pruned": pruned}));
        app.out.line(if keeps_all {
            format!("{name}: keeps its rows (no `retain` declared)")
        } else {
            format!("{name}: {} deleted", count(pruned, "item"))
        });
    }
    app.out.json(&all);
    Ok(ExitCode::SUCCESS)
}
