//! `gleaner channels show`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_intake::channels::Opened;
use serde_json::{Map, Value, json};

use super::list::state;
use super::tools::{Form, channels, safe_addresses, tell_url, with_key};
use crate::App;
use crate::output::{BAD, Output, WARN, paint};
use crate::table::Table;
use crate::words::{brief, shell_word};

/// Show a channel, its secrets masked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels show 'US support'
  gleaner channels show 'US support' --reveal                the key, the URL and the secrets
  gleaner channels show 'US support' --reveal -o json | jq -r .webhook_url")]
pub(crate) struct Args {
    /// Name or id
    channel: String,
    /// Show the key, the URL and the secrets in clear
    #[arg(long)]
    reveal: bool,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let channels = channels(app).await?;
    let opened = channels.get(&args.channel).await?;
    let summary = channels.summary(&opened);
    let settings = if args.reveal { opened.channel.settings.as_map().clone() } else { summary.settings.clone() };
    let at = safe_addresses(app, &channels, out).await?;
    if args.reveal {
        let mut shown = with_key(&channels, &opened, &at)?;
        shown["settings"] = json!(settings);
        out.json(&shown);
    } else {
        out.json(&summary);
    }
    let mut table = Table::new(&["", " "]);
    table.row(vec!["name".into(), summary.name.clone().into()]);
    table.row(vec!["id".into(), summary.id.to_string().into()]);
    table.row(vec!["provider".into(), summary.provider.clone().into()]);
    table.row(vec!["state".into(), state(&summary)]);
    table.row(vec!["owner".into(), summary.owner.clone().unwrap_or_else(|| "none".into()).into()]);
    table.row(vec!["contacts".into(), if summary.auto_create_contacts { "made of unknown senders" } else { "matched only" }.into()]);
    table.row(vec!["key".into(), summary.ingestion_key.clone().into()]);
    for (name, value) in rows(&settings, "") {
        table.row(vec![name.clone().into(), with_end(&opened, &name, &value).into()]);
    }
    table.row(vec!["changed".into(), summary.changed_at.clone().into()]);
    // Names and values need no column titles.
    out.listing(table.text().lines().skip(1).collect::<Vec<_>>().join("\n"));
    problems(out, &summary.problems);
    cautions(out, &summary.cautions);
    if args.reveal {
        tell_url(out, &opened, &at)?;
    } else {
        out.note(format!("`gleaner channels show {} --reveal` shows the URL and the secrets.", shell_word(&args.channel)));
    }
    Ok(ExitCode::SUCCESS)
}

fn problems(out: Output, problems: &[String]) {
    for problem in problems {
        out.listing(format!("{} {problem}", paint(BAD, "!")));
    }
}

/// Prints warnings about settings that work but have a risk.
pub(super) fn cautions(out: Output, cautions: &[String]) {
    for caution in cautions {
        out.listing(format!("{} {caution}", paint(WARN, "!")));
    }
}

/// A previous secret is shown with its expiry.
fn with_end(opened: &Opened, name: &str, value: &str) -> String {
    match opened.expires.get(name).and_then(Value::as_str) {
        Some(end) => format!("{value}  until {end}"),
        None => value.to_owned(),
    }
}

/// Settings by their dotted names.
fn rows(settings: &Map<String, Value>, above: &str) -> Vec<(String, String)> {
    settings
        .iter()
        .flat_map(|(name, value)| match value {
            Value::Object(members) => rows(members, &format!("{above}{name}.")),
            Value::String(text) => vec![(format!("{above}{name}"), text.clone())],
            other => vec![(format!("{above}{name}"), brief(other))],
        })
        .collect()
}
