//! `gleaner runs list`: the newest runs, and how they went.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use serde_json::Value;
use tokio_postgres::types::Type;

use super::outcome::Outcome;
use crate::App;
use crate::output::{BAD, GOOD, PLAIN, of_state};
use crate::table::{Cell, Table};
use crate::words::{harmless, member, moment};

/// List runs, the newest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner runs list
  gleaner runs list --status running
  gleaner runs list -n 5 --json")]
pub(crate) struct Args {
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
    /// Only those with this status
    #[arg(short, long, value_parser = PossibleValuesParser::new(["queued", "running", "completed", "failed", "cancelled"]))]
    status: Option<String>,
}

const SQL: &str = "
    select to_jsonb(r) - 'csv_data' || jsonb_build_object('recording', coalesce(c.name, r.recording_id), 'recording_version', v.version,
               'dead', gleaner.state_runs(r, now()) = 'dead'),
           extract(epoch from (now() - r.created_at))::float8
    from public.execution_jobs as r
    left join public.recording_versions as v on v.id = r.recording_version_id
    left join public.recordings as c on c.id = v.recording_id
    where $1::text is null or r.status = $1
    order by r.created_at desc, r.id
    limit $2";

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let rows = client.query_typed(SQL, &[(&args.status, Type::TEXT), (&args.limit, Type::INT8)]).await?;
    let runs: Vec<(Value, f64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    app.out.json(&runs.iter().map(|(run, _)| run).collect::<Vec<_>>());
    if runs.is_empty() {
        app.out.line("There are no runs. Queue one: gleaner runs submit recording.json --csv data.csv --watch");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["ID", "RECORDING", "QUEUED", "STATUS", "DETAIL"]);
    for (run, age) in &runs {
        let outcome = outcome(run);
        let status = match &outcome {
            Some(outcome) if run["status"] == "completed" => {
                Cell::styled(if outcome.passed { "passed" } else { "failed" }, if outcome.passed { GOOD } else { BAD })
            }
            _ => Cell::styled(member(run, "status"), if run["dead"] == true { BAD } else { of_state(&member(run, "status")) }),
        };
        let detail = outcome.map(|outcome| outcome.text).unwrap_or_else(|| {
            let stage = member(&run["progress"], "stage");
            if stage.is_empty() { member(run, "error") } else { stage }
        });
        table.row(vec![
            member(run, "id").into(),
            harmless(&member(run, "recording")).into(),
            moment(-age).into(),
            status,
            Cell::styled(harmless(&detail), PLAIN),
        ]);
    }
    app.out.listing(table.text());
    Ok(ExitCode::SUCCESS)
}

/// How a run that was read with `dead` ended.
pub(super) fn outcome(run: &Value) -> Option<Outcome> {
    let result = Some(&run["result"]).filter(|result| !result.is_null());
    Outcome::of(run["status"].as_str().unwrap_or_default(), run["dead"] == true, result, run["error"].as_str())
}
