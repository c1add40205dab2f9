//! `gleaner runs submit`: queues a run, and shows how it goes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::outcome::Outcome;
use super::{junit, save, show};
use crate::App;
use crate::output::{BAD, DIM, GOOD, paint};
use crate::words::{harmless, span};

/// How often --watch looks.
const LOOK: Duration = Duration::from_millis(200);

/// Replay a recording in a browser, once for each line of the data.
///
/// The file is stored as a recording first, as `gleaner runs save` does. Agents that find Chromium and its driver take the run. With
/// --watch the exit code is 0 if every line passed, else 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner runs submit order.json
  gleaner runs submit order.json --csv people.csv --watch
  gleaner runs submit 'Order form' --csv people.csv --watch --junit report.xml
  gleaner runs submit order.json --label vpn                  only on machines with that label")]
pub(crate) struct Args {
    /// The recording: a file, or the name of one that is stored
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// The data, with a line of names at its head: {{name}} in the recording is replaced
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Only on machines with this label
    #[arg(long)]
    label: Option<String>,
    /// Keep screenshots this many days
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..=3650))]
    keep: Option<u16>,
    /// Show each line as it is finished, until the end
    #[arg(long)]
    watch: bool,
    /// Write a JUnit report to this file at the end
    #[arg(long, value_name = "FILE", requires = "watch")]
    junit: Option<PathBuf>,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let data =
        args.csv.as_ref().map(|file| std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))).transpose()?;
    gleaner_systems::runs::data::lines(data.as_deref()).map_err(anyhow::Error::msg)?;
    let client = app.target.client().await?;
    let recording = recording(&client, &args).await?;
    let mut config = json!({});
    if let Some(label) = &args.label {
        config["label"] = json!(label);
    }
    if let Some(days) = args.keep {
        config["keep_days"] = json!(days);
    }
    let sql = "insert into public.execution_jobs (recording_id, csv_data, config) values ($1, $2, $3) returning id";
    let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
        [(&recording, Type::TEXT), (&data, Type::TEXT), (&config, Type::JSONB)];
    let rows = client.query_typed(sql, &params).await.context("queue the run")?;
    let id: Uuid = rows.first().context("the run was not stored")?.get(0);
    if !args.watch {
        app.out.json(&json!({"id": id}));
        app.out.line(format!("queued run {id}\n  gleaner runs show {id}"));
        return Ok(ExitCode::SUCCESS);
    }
    app.out.line(format!("run {id}"));
    let outcome = watch(app, &client, id).await?;
    let run = show::read(&client, id).await?;
    if let Some(file) = &args.junit {
        std::fs::write(file, junit::report(&run)?).with_context(|| format!("write {}", file.display()))?;
    }
    app.out.json(&run);
    app.out.line(paint(if outcome.passed { GOOD } else { BAD }, harmless(&outcome.text)));
    Ok(if outcome.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The id of the recording, which is stored first if it is a file.
async fn recording(client: &Client, args: &Args) -> Result<String> {
    if args.recording.exists() {
        let (_, saved) = save::save(client, &args.recording, None).await?;
        return Ok(saved["recording_id"].as_str().unwrap_or_default().to_owned());
    }
    let name = args.recording.to_string_lossy();
    let sql = "select r.id::text from public.recordings as r where lower(r.name) = lower(btrim($1)) or r.id::text = $1";
    match client.query_typed(sql, &[(&name, Type::TEXT)]).await?.first() {
        Some(row) => Ok(row.get(0)),
        None => bail!("there is no file {name}, and no recording of that name"),
    }
}

/// Prints each line of the data as it is finished, until the run has ended.
async fn watch(app: &App, client: &Client, id: Uuid) -> Result<Outcome> {
    let sql = "select r.status, r.progress, r.result, r.error, gleaner.state_runs(r, now()) = 'dead',
                      (select coalesce(jsonb_agg(to_jsonb(n) - 'steps' order by n.row_number), '[]') from public.run_rows as n
                       where n.run_id = r.id and n.row_number > $2)
               from public.execution_jobs as r where r.id = $1";
    let (mut seen, mut last) = (0_i32, String::new());
    loop {
        let rows = client.query_typed(sql, &[(&id, Type::UUID), (&seen, Type::INT4)]).await?;
        let Some(row) = rows.first() else { bail!("run {id} was deleted") };
        let (status, finished): (&str, Value) = (row.get(0), row.get(5));
        let (progress, result): (Option<Value>, Option<Value>) = (row.get(1), row.get(2));
        for line in finished.as_array().into_iter().flatten() {
            seen = line["row_number"].as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(seen);
            let took = span(line["duration_ms"].as_f64().unwrap_or_default() / 1000.0);
            let text = match line["status"].as_str() {
                Some("passed") => format!("{}  row {seen}  {took}", paint(GOOD, "passed")),
                _ => format!("{}  row {seen}  {took}  {}", paint(BAD, "failed"), harmless(line["error"].as_str().unwrap_or_default())),
            };
            app.out.line(text);
        }
        if let Some(outcome) = Outcome::of(status, row.get(4), result.as_ref(), row.get(3)) {
            return Ok(outcome);
        }
        let now = match (status, row.get::<_, Option<&str>>(3)) {
            ("queued", _) => "waiting for an agent with a browser".to_owned(),
            ("failed", Some(error)) => format!("{error}; it is tried again"),
            _ => progress.as_ref().and_then(|now| now["stage"].as_str()).filter(|_| seen == 0).unwrap_or_default().to_owned(),
        };
        if now != last && !now.is_empty() {
            app.out.line(paint(DIM, harmless(&now)));
        }
        last = now;
        tokio::time::sleep(LOOK).await;
    }
}
