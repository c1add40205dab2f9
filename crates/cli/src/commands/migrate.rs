//! `gleaner migrate`.

mod cron;
mod supabase;

use std::process::ExitCode;

use anyhow::Result;
use gleaner::migrate::{State, Step};
use serde_json::json;

use crate::App;
use crate::output::{BAD, DIM, GOOD, WARN, paint};
use crate::table::{Cell, Table};
use crate::words::count;

/// Bring the database's schema up to date.
///
/// Safe to repeat, and safe when two run at once. The engine and the queue `jobs` are always installed. The first run on an empty
/// database installs every system; on one with tables it installs those whose tables exist. Existing tables get the columns
/// they lack, and keep what they have. The database records its systems, and each run brings them up to date.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner migrate
  gleaner migrate --systems crm,followups   also bring these systems
  gleaner migrate --systems jobs            the first time: the engine and its built-in queue alone
  gleaner migrate --status                  what is applied, what is not
  gleaner migrate --dry-run > review.sql    the SQL it would run, nothing is changed
  gleaner migrate --cron                    register the systems' sweeps with pg_cron
  gleaner migrate --supabase                show schema gleaner to the Supabase API")]
pub(crate) struct Args {
    /// Install these systems, in addition to those the database has: crm, dumps, runs, followups
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    systems: Vec<String>,
    /// List every step and whether it is applied
    #[arg(long, conflicts_with_all = ["dry_run", "cron", "supabase"])]
    status: bool,
    /// Print the SQL it would run, and change nothing
    #[arg(long, conflicts_with_all = ["cron", "supabase"])]
    dry_run: bool,
    /// Also register the sweeps with pg_cron, where it is installed
    #[arg(long)]
    cron: bool,
    /// Also expose schema gleaner to PostgREST, on a Supabase project
    #[arg(long)]
    supabase: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let url = app.target.url().await?;
    let mut client = gleaner::connect(&url).await?;
    if args.status {
        return show(app, &gleaner::migrate::status_of(&client, &args.systems).await?);
    }
    if args.dry_run {
        app.out.data(gleaner::migrate::dry_run(&mut client, &args.systems).await?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let applied = gleaner::migrate::migrate_systems(&url, &args.systems, &|step| app.out.note(paint(DIM, step))).await?;
    for step in &applied {
        app.out.line(format!("{}  {step}", paint(GOOD, "applied")));
    }
    app.out.line(if applied.is_empty() {
        "The schema is up to date.".into()
    } else {
        format!("{} applied; the schema is up to date.", count(applied.len() as i64, "step"))
    });
    let systems = gleaner::migrate::systems(&client).await?;
    app.out.line(format!("Systems here: {}.", systems.join(", ")));
    let mut answer = json!({"applied": applied, "systems": systems});
    if args.cron {
        answer["cron"] = cron::register(app, &client).await?;
    }
    if args.supabase {
        answer["supabase"] = supabase::expose(app, &client).await?;
    }
    app.out.json(&answer);
    Ok(ExitCode::SUCCESS)
}

/// The exit code is 1 when a step is not applied yet, so that a script can check.
fn show(app: &App, steps: &[Step]) -> Result<ExitCode> {
    let word = |state: State| match state {
        State::Applied => ("applied", GOOD),
        State::Pending => ("pending", WARN),
        State::Changed => ("changed", WARN),
        State::Edited => ("edited", BAD),
        State::Kept => ("kept", GOOD),
        State::Drifted => ("drifted", WARN),
    };
    let mut table = Table::new(&["STATE", "KIND", "STEP"]);
    for step in steps {
        let (state, style) = word(step.state);
        table.row(vec![Cell::styled(state, style), format!("{:?}", step.kind).to_lowercase().into(), step.name.into()]);
    }
    app.out.line(table.text());
    let left = steps.iter().filter(|step| !step.state.is_done()).count();
    app.out.line(if left == 0 {
        "\nThe schema is up to date.".into()
    } else {
        format!("\n{} to apply: run `gleaner migrate`.", count(left as i64, "step"))
    });
    let all: Vec<_> =
        steps.iter().map(|s| json!({"name": s.name, "kind": format!("{:?}", s.kind).to_lowercase(), "state": word(s.state).0})).collect();
    app.out.json(&json!({"up_to_date": left == 0, "steps": all}));
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
