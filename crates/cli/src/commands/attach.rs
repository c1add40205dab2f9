//! `gleaner attach`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use gleaner::attach::{Options, attach};
use gleaner::plan::Plan;
use gleaner::{Declaration, Error};
use serde_json::json;
use tokio_postgres::Client;

use crate::App;
use crate::output::{BOLD, DIM, GOOD, WARN, paint};
use crate::words::count;

/// Turn a table into a queue, by a declaration.
///
/// Adds only what is missing, without a rewrite and without blocking writers; repeat it after a change.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner attach orders.toml
  gleaner attach orders.toml --dry-run      what it would add, and the SQL
  gleaner attach orders.toml --add-words    may add status words to an enum

A declaration is a few lines:
  table  = \"public.orders\"
  status = { column = \"state\", ready = \"new\", running = \"packing\", done = \"sent\", failed = \"failed\" }")]
pub(crate) struct Args {
    /// The declaration (TOML); the queue is named like the file unless it says otherwise
    file: PathBuf,
    /// Add status words that the enum lacks; they cannot be removed again
    #[arg(long)]
    add_words: bool,
    /// Check it, print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let source = std::fs::read_to_string(&args.file).with_context(|| format!("read {}", args.file.display()))?;
    let stem = args.file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("queue");
    let declaration = Declaration::parse(&source, stem).map_err(|error| match error {
        Error::Syntax { source, .. } => Error::Syntax { file: args.file.display().to_string(), source },
        other => other,
    })?;
    let mut client = app.target.client().await?;
    // A bare database lacks the roles and tables that a queue needs. Report that, and not the errors that follow from it.
    gleaner::registry::list(&client).await?;
    if args.dry_run {
        return rehearse(app, &client, &declaration).await;
    }
    let say = |step: &str| app.out.note(paint(DIM, step));
    let report = attach(&mut client, &declaration, &source, Options { add_words: args.add_words }, &say).await?;
    app.out.json(&json!({
        "queue": report.queue, "table": declaration.table, "added_columns": report.added_columns, "built_indexes": report.built_indexes,
        "notes": report.notes,
    }));
    let name = &report.queue;
    app.out.line(format!("{} queue {} on {}", paint(GOOD, "attached"), paint(BOLD, name), declaration.table));
    app.out.line(format!("  columns  {}", listed(&report.added_columns, "all there")));
    app.out.line(format!("  indexes  {}", listed(&report.built_indexes, "all there")));
    for note in &report.notes {
        app.out.line(format!("  {}     {note}", paint(WARN, "note")));
    }
    app.out.line(format!("\nTry: gleaner items list {name}, gleaner sql {name}, gleaner work {name} --exec CMD"));
    Ok(ExitCode::SUCCESS)
}

fn listed(names: &[String], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { format!("added {}", names.join(", ")) }
}

async fn rehearse(app: &App, client: &Client, declaration: &Declaration) -> Result<ExitCode> {
    let plan = Plan::make(client, declaration).await?;
    let columns: Vec<&str> = plan.columns.iter().map(|c| c.name.as_str()).filter(|name| !plan.table.columns.contains_key(*name)).collect();
    let sql = gleaner::render::render(&plan)?;
    let indexes: Vec<String> = plan.indexes.iter().map(|index| format!("{} {}", index.name, index.definition)).collect();
    app.out.json(&json!({
        "queue": plan.name, "table": declaration.table, "missing_columns": columns, "indexes": indexes, "missing_words": plan.missing_labels, "sql": sql,
    }));
    app.out.line(sql.trim_end());
    app.out.note(format!("\nThe declaration fits {}. Attaching it as queue {} would", plan.table.sql(), plan.name));
    if !plan.missing_labels.is_empty() {
        app.out.note(format!("  add the status words {} (only with --add-words)", plan.missing_labels.join(", ")));
    }
    app.out.note(format!(
        "  add {}{}",
        count(columns.len() as i64, "column"),
        if columns.is_empty() { String::new() } else { format!(": {}", columns.join(", ")) }
    ));
    app.out.note("  build those of these indexes that are missing, without blocking writers:");
    indexes.iter().for_each(|index| app.out.note(format!("    {index}")));
    app.out.note("  create the functions and triggers above");
    Ok(ExitCode::SUCCESS)
}
