//! `gleaner followups …`: messages to people at an appointed time.

mod cancel;
mod list;
mod reschedule;
mod schedule;
mod schedules;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::App;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner followups schedule ada@example.com --in 2h --text 'Did you get my offer?'
  gleaner followups list
  gleaner followups reschedule 1f0c… --at '2026-12-01 09:00 Europe/Berlin'
  gleaner followups cancel --prospect ada@example.com
  gleaner followups schedules add ada@example.com --cron '0 9 * * MON' --zone Europe/Berlin --intent 'ask how it goes'")]
pub(crate) enum Command {
    Schedule(schedule::Args),
    List(list::Args),
    Reschedule(reschedule::Args),
    Approve(reschedule::Approve),
    Cancel(cancel::Args),
    /// Messages that recur
    #[command(subcommand)]
    Schedules(schedules::Command),
}

pub(crate) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::Schedule(args) => schedule::run(app, args).await,
        Command::List(args) => list::run(app, args).await,
        Command::Reschedule(args) => reschedule::run(app, args).await,
        Command::Approve(args) => reschedule::approve(app, args).await,
        Command::Cancel(args) => cancel::run(app, args).await,
        Command::Schedules(command) => schedules::run(app, command).await,
    }
}

/// A time, by the clock of the database.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct When {
    /// From now: 90s, 5min, 2h, 3d
    #[arg(long, value_name = "SPAN")]
    r#in: Option<String>,
    /// At this time, as PostgreSQL reads it; a zone may follow
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
}

impl When {
    /// An expression of PostgreSQL with one parameter, and its value.
    fn sql(&self, parameter: usize) -> Result<(String, String)> {
        Ok(match (&self.r#in, &self.at) {
            (Some(span), _) => (format!("clock_timestamp() + ${parameter}::text::interval"), interval(span)?),
            (None, Some(at)) => (format!("${parameter}::text::timestamptz"), at.clone()),
            (None, None) => bail!("say when, with --in or --at"),
        })
    }
}

/// PostgreSQL reads `5min` and `2h`, and takes `5m` for months in some places: only what is clear is passed on.
fn interval(span: &str) -> Result<String> {
    let at = span.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(span.len());
    let (number, unit) = span.split_at(at);
    let unit = match unit.trim() {
        "" | "s" | "sec" | "second" | "seconds" => "seconds",
        "m" | "min" | "minute" | "minutes" => "minutes",
        "h" | "hour" | "hours" => "hours",
        "d" | "day" | "days" => "days",
        _ => bail!("{span:?} is no length of time; write 90s, 5min, 2h or 3d"),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(format!("{number} {unit}")),
        _ => bail!("{span:?} is no length of time; write 90s, 5min, 2h or 3d"),
    }
}
