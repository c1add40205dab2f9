//! `gleaner dumps …`: documents and notes, and what agents made of them.

mod add;
mod list;
mod show;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::App;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner dumps add notes.md paper.pdf --wait     have agents read them
  gleaner dumps list                              how far they are
  gleaner dumps show 1f0c…                        what was found")]
pub(crate) enum Command {
    Add(add::Args),
    List(list::Args),
    Show(show::Args),
}

pub(crate) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::Add(args) => add::run(app, args).await,
        Command::List(args) => list::run(app, args).await,
        Command::Show(args) => show::run(app, args).await,
    }
}

/// `2.3 MB`, as people write sizes.
fn size(bytes: i64) -> String {
    match bytes {
        ..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// The end of a dump's processing, or how far it is, in one line.
fn standing(state: &str, stage: Option<&str>, percent: Option<f64>, message: Option<&str>, error: Option<&str>) -> String {
    match state {
        "completed" => message.unwrap_or("done").to_owned(),
        "failed" => error.unwrap_or("failed").to_owned(),
        "processing" | "claimed" => match (stage, percent) {
            (Some(stage), Some(percent)) => format!("{stage} ({percent:.0} %)"),
            (Some(stage), None) => stage.to_owned(),
            _ => "begun".to_owned(),
        },
        "pending" => "waiting for an agent".to_owned(),
        other => other.to_owned(),
    }
}
