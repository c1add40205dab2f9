//! `gleaner runs save`: adds a recording, or another version of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::App;
use crate::words::harmless;

/// Add a recording, or another version of the one with that name.
///
/// A recording is what Chrome's Recorder exports as JSON, or a list of our own steps. Versions are never changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner runs save order.json
  gleaner runs save order.json --name 'Order form'")]
pub(crate) struct Args {
    /// The recording, as JSON
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Its name. By default its title, else the name of the file
    #[arg(long)]
    name: Option<String>,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let (name, saved) = save(&client, &args.recording, args.name).await?;
    app.out.json(&saved);
    let done = if saved["known"] == true { "is known as" } else { "is" };
    app.out.line(format!("{} {done} version {} of {}", args.recording.display(), saved["version"], harmless(&name)));
    Ok(ExitCode::SUCCESS)
}

/// Stores the file as a recording. Returns its name, and what `save_recording` answers.
pub(super) async fn save(client: &Client, file: &Path, name: Option<String>) -> Result<(String, Value)> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    let content: Value = serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    let stem = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let title =
        || ["title", "name"].iter().find_map(|key| content[*key].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned));
    let name = name.or_else(title).or_else(stem).unwrap_or_default();
    let saved = client.query_typed("select public.save_recording($1, $2)", &[(&name, Type::TEXT), (&content, Type::JSONB)]).await;
    let rows = match saved {
        Ok(rows) => rows,
        Err(error) => match error.as_db_error().filter(|refused| refused.code().code() == "GL002") {
            Some(refused) => bail!("{}: {}\n  {}", file.display(), refused.message(), refused.hint().unwrap_or_default()),
            None => return Err(error).context("save the recording: does this database have the system runs? `gleaner migrate` says"),
        },
    };
    Ok((name, rows.first().context("the recording was not stored")?.get(0)))
}
