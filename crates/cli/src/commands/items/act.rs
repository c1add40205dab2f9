//! An operator's operations on items: requeue, cancel, bury, assign.

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner::queue::Answer;
use gleaner::{Acts, Outcome};
use serde_json::{Map, Value, json};
use tokio_postgres::Client;

use crate::App;
use crate::output::{BAD, DIM, GOOD};
use crate::table::{Cell, Table};
use crate::target::{Named, notify_workers};

#[derive(Debug, clap::Args)]
struct Keys {
    #[command(flatten)]
    named: Named,
    /// The items' keys
    #[arg(required = true)]
    ids: Vec<String>,
}

/// Retry items now, with all their attempts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner items requeue jobs 42 43
  gleaner items list jobs --state dead --json | jq -r '.[].id' | xargs gleaner items requeue jobs")]
pub(crate) struct Requeue {
    #[command(flatten)]
    keys: Keys,
}

/// Cancel items, running ones too.
///
/// The holder of a running item gets *lost* at its next call; `gleaner work` checks every second and ends its command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner items cancel jobs 42 --reason 'ordered twice'
  gleaner items cancel followups --where prospect_id=17     all that are unfinished")]
pub(crate) struct Cancel {
    #[command(flatten)]
    named: Named,
    /// The items' keys
    #[arg(required_unless_present = "matching", conflicts_with = "matching")]
    ids: Vec<String>,
    /// Instead of keys: every unfinished item with this value; several must all match
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    matching: Vec<String>,
    /// The reason, stored with the item
    #[arg(long)]
    reason: Option<String>,
}

/// Make items dead letters.
///
/// They stay so until they are requeued.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner items bury jobs 42 --reason 'address does not exist'")]
pub(crate) struct Bury {
    #[command(flatten)]
    keys: Keys,
    /// The reason, stored with the item
    #[arg(long)]
    reason: Option<String>,
}

/// Give items to another owner, or to no owner.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner items assign activities 1f0c… --owner 7
  gleaner items assign activities 1f0c… --no-owner          every agent may take it")]
pub(crate) struct Assign {
    #[command(flatten)]
    keys: Keys,
    /// The new owner
    #[arg(long, required_unless_present = "no_owner", conflicts_with = "no_owner")]
    owner: Option<String>,
    /// No owner: every agent may take the items
    #[arg(long)]
    no_owner: bool,
}

pub(super) async fn requeue(app: &App, args: Requeue) -> Result<ExitCode> {
    let (client, acts) = app.target.acts(&args.keys.named).await?;
    let answers = acts.requeue(&client, &args.keys.as_str()).await?;
    tell(app, &client, &acts, "requeued", &answers).await
}

pub(super) async fn cancel(app: &App, args: Cancel) -> Result<ExitCode> {
    let (client, acts) = app.target.acts(&args.named).await?;
    let reason = args.reason.as_deref();
    let answers = if args.matching.is_empty() {
        let ids: Vec<&str> = args.ids.iter().map(String::as_str).collect();
        acts.cancel(&client, &ids, reason).await?
    } else {
        acts.cancel_matching(&client, &matching(&args.matching)?, reason).await?
    };
    tell(app, &client, &acts, "cancelled", &answers).await
}

pub(super) async fn bury(app: &App, args: Bury) -> Result<ExitCode> {
    let (client, acts) = app.target.acts(&args.keys.named).await?;
    let answers = acts.bury(&client, &args.keys.as_str(), args.reason.as_deref()).await?;
    tell(app, &client, &acts, "buried", &answers).await
}

pub(super) async fn assign(app: &App, args: Assign) -> Result<ExitCode> {
    let (client, acts) = app.target.acts(&args.keys.named).await?;
    let answers = acts.assign(&client, &args.keys.as_str(), args.owner.as_deref()).await?;
    tell(app, &client, &acts, "assigned", &answers).await
}

impl Keys {
    fn as_str(&self) -> Vec<&str> {
        self.ids.iter().map(String::as_str).collect()
    }
}

fn matching(pairs: &[String]) -> Result<Value> {
    let mut all = Map::new();
    for pair in pairs {
        let Some((column, value)) = pair.split_once('=') else { bail!("--where takes COLUMN=VALUE, not {pair:?}") };
        all.insert(column.into(), value.into());
    }
    Ok(all.into())
}

/// One line per item. The exit code is 1 when one was not found.
async fn tell(app: &App, client: &Client, acts: &Acts, done: &str, answers: &[Answer]) -> Result<ExitCode> {
    notify_workers(client, acts.name()).await;
    let all: Vec<Value> = answers.iter().map(|a| json!({"id": a.key, "outcome": a.outcome.as_str(), "status": a.status})).collect();
    app.out.json(&all);
    let mut table = Table::new(&["ID", "OUTCOME", "STATUS"]);
    for answer in answers {
        let outcome = match answer.outcome {
            Outcome::Done => Cell::styled(done, GOOD),
            Outcome::Already => Cell::styled("nothing to change", DIM),
            Outcome::Lost => Cell::styled("lost", BAD),
            Outcome::Gone => Cell::styled("no such item", BAD),
        };
        table.row(vec![answer.key.clone().into(), outcome, answer.status.clone().unwrap_or_default().into()]);
    }
    app.out.line(if answers.is_empty() { "No unfinished item fits.".to_owned() } else { table.text() });
    let missing = answers.iter().any(|answer| matches!(answer.outcome, Outcome::Gone | Outcome::Lost));
    Ok(if missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
