//! `gleaner runs show`: a run, line by line and step by step.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{junit, list};
use crate::App;
use crate::output::{BAD, DIM, GOOD, of_state, paint};
use crate::words::{count, harmless, member, span};

/// Show a run: how each line of the data went, the step that failed, and where its screenshot is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner runs show 1f0c…
  gleaner runs show 1f0c… --json
  gleaner runs show 1f0c… --junit > report.xml")]
pub(crate) struct Args {
    /// The run's id
    run: Uuid,
    /// Print a JUnit report instead
    #[arg(long, conflicts_with = "json")]
    junit: bool,
}

const SQL: &str = "
    select to_jsonb(r) - 'csv_data' || jsonb_build_object('recording', coalesce(c.name, r.recording_id), 'recording_version', v.version,
        'dead', gleaner.state_runs(r, now()) = 'dead',
        'rows', (select coalesce(jsonb_agg(to_jsonb(n) - 'run_id' order by n.row_number), '[]') from public.run_rows as n where n.run_id = r.id),
        'artefacts', (select coalesce(jsonb_agg(to_jsonb(a) - 'run_id' order by a.row_number, a.step, a.name), '[]')
                      from public.run_artefacts as a where a.run_id = r.id))
    from public.execution_jobs as r
    left join public.recording_versions as v on v.id = r.recording_version_id
    left join public.recordings as c on c.id = v.recording_id
    where r.id = $1";

/// The run with its rows and artefacts.
pub(super) async fn read(client: &Client, run: Uuid) -> Result<Value> {
    let row = client.query_typed(SQL, &[(&run, Type::UUID)]).await?.pop();
    Ok(row.with_context(|| format!("there is no run {run}; `gleaner runs list` lists them"))?.get(0))
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let run = read(&client, args.run).await?;
    if args.junit {
        app.out.data(junit::report(&run)?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    app.out.json(&run);
    let status = member(&run, "status");
    let detail = list::outcome(&run).map_or_else(|| member(&run["progress"], "stage"), |outcome| outcome.text);
    let version = run["recording_version"].as_i64().map(|version| format!(", version {version}")).unwrap_or_default();
    let mut lines = vec![
        format!("{}{version}", harmless(&member(&run, "recording"))),
        format!("{}  {}", paint(of_state(&status), &status), harmless(&detail)),
    ];
    for row in run["rows"].as_array().into_iter().flatten() {
        lines.push(line(&run, row));
    }
    app.out.listing(lines.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn line(run: &Value, row: &Value) -> String {
    let passed = row["status"] == "passed";
    let steps = row["steps"].as_array().map_or(0, Vec::len);
    let took = span(row["duration_ms"].as_f64().unwrap_or_default() / 1000.0);
    let status = paint(if passed { GOOD } else { BAD }, member(row, "status"));
    let mut text = format!("{status}  row {}  {took}  {}", row["row_number"], count(steps as i64, "step"));
    if !passed {
        text += &format!("\n  {}", harmless(&member(row, "error")));
    }
    for artefact in run["artefacts"].as_array().into_iter().flatten().filter(|artefact| artefact["row_number"] == row["row_number"]) {
        let path = format!("/v1/runs/{}/artefacts/{}", member(run, "id"), member(artefact, "id"));
        text += &format!("\n  {}", paint(DIM, format!("{}  {path}", harmless(&member(artefact, "name")))));
    }
    text
}
