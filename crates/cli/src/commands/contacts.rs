//! `gleaner contacts …`: activities without a matching contact, and the user's decision about them.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use gleaner_intake::contacts::{self, Answer, Cursor, Link, Outcome, Page};
use serde_json::json;
use uuid::Uuid;

use crate::App;
use crate::output::{BAD, DIM, GOOD, paint};
use crate::table::{Cell, Table};
use crate::words::{harmless, moment};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner contacts unmatched                        messages without a contact
  gleaner contacts link 1f0c… 42 --backfill         they are all from contact 42
  gleaner contacts unlink 1f0c…                     this one was not")]
pub(crate) enum Command {
    Unmatched(Unmatched),
    Link(LinkArgs),
    Unlink(Unlink),
}

/// List activities without a contact, the newest first.
///
/// Candidates are the contacts among whom a person must choose: several that have the sender's address, or the one an
/// activity was taken from.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner contacts unmatched
  gleaner contacts unmatched --limit 5 --json
  gleaner contacts unmatched --after 2026-01-02T03:04:05.000006Z_1f0c…     the next page, as the last one said")]
pub(crate) struct Unmatched {
    /// The most to list
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
    /// Skip this many
    #[arg(long, value_name = "PLACE")]
    after: Option<Cursor>,
}

/// Link an activity to a contact.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner contacts link 1f0c… 42
  gleaner contacts link 1f0c… 42 --backfill --remember     and everything from this sender, past and future")]
pub(crate) struct LinkArgs {
    /// The activity's id
    activity: Uuid,
    /// The contact's id
    contact: i64,
    /// Also every other activity of the same sender that has no contact
    #[arg(long)]
    backfill: bool,
    /// Also give the contact the sender's address, so that the next message finds it
    #[arg(long)]
    remember: bool,
}

/// Remove the link between activities and their contact.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner contacts unlink 1f0c…")]
pub(crate) struct Unlink {
    /// The activities' ids
    #[arg(required = true)]
    activities: Vec<Uuid>,
}

pub(crate) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::Unmatched(args) => unmatched(app, args).await,
        Command::Link(args) => link(app, args).await,
        Command::Unlink(args) => unlink(app, args).await,
    }
}

async fn unmatched(app: &App, args: Unmatched) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let items = contacts::unmatched(&client, &Page { limit: args.limit, after: args.after }).await?;
    let next = items.last().filter(|_| items.len() as i64 == args.limit).map(|last| last.cursor().to_string());
    app.out.json(&json!({"items": items, "next": next}));
    if items.is_empty() {
        app.out.line("Every activity has its contact.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["ID", "TYPE", "SENDER", "CANDIDATES", "CAME", "ABOUT"]);
    for item in &items {
        let sender = item.from.as_deref().or(item.sender.as_deref()).unwrap_or_default();
        let candidates: Vec<String> = item.candidates.iter().map(|c| format!("{} {}", c.id, c.name).trim().to_owned()).collect();
        let about = item.subject.as_deref().or(item.excerpt.as_deref()).unwrap_or_default();
        table.row(vec![
            item.id.to_string().into(),
            item.kind.as_str().into(),
            one_line(sender).into(),
            one_line(&candidates.join(", ")).into(),
            moment(-item.age_seconds).into(),
            Cell::styled(one_line(about), DIM),
        ]);
    }
    app.out.listing(table.text());
    if let Some(next) = next {
        app.out.note(paint(DIM, format!("There may be more: gleaner contacts unmatched --after {next}")));
    }
    Ok(ExitCode::SUCCESS)
}

async fn link(app: &App, args: LinkArgs) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let how = Link { backfill: args.backfill, remember: args.remember };
    let answers = contacts::link(&client, args.activity, args.contact, how).await?;
    let linked = answers.iter().filter(|answer| answer.outcome == Outcome::Done).count();
    Ok(tell(
        app,
        "linked",
        &answers,
        &format!(
            "{} linked to contact {}.",
            match linked {
                1 => "1 activity".to_owned(),
                n => format!("{n} activities"),
            },
            args.contact
        ),
    ))
}

async fn unlink(app: &App, args: Unlink) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let mut answers = Vec::new();
    for activity in args.activities {
        answers.push(contacts::unlink(&client, activity).await?);
    }
    Ok(tell(app, "unlinked", &answers, ""))
}

/// One line per activity. The exit code is 1 when one was not found.
fn tell(app: &App, done: &str, answers: &[Answer], sum: &str) -> ExitCode {
    app.out.json(&answers);
    let mut table = Table::new(&["ID", "OUTCOME"]);
    for answer in answers {
        let outcome = match answer.outcome {
            Outcome::Done => Cell::styled(done, GOOD),
            Outcome::Already => Cell::styled("nothing to change", DIM),
            Outcome::Gone => Cell::styled("no such activity", BAD),
        };
        table.row(vec![answer.id.to_string().into(), outcome]);
    }
    app.out.line(table.text());
    if answers.len() > 1 && !sum.is_empty() {
        app.out.line(sum);
    }
    let missing = answers.iter().any(|answer| answer.outcome == Outcome::Gone);
    if missing { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn one_line(text: &str) -> String {
    harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
