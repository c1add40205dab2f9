//! `gleaner channels refusals`.

use std::process::ExitCode;

use anyhow::Result;

use super::tools::{Form, channels};
use crate::App;
use crate::output::{DIM, WARN, paint};
use crate::table::{Cell, Table};

/// List rejected webhook requests, by minute and reason.
///
/// Without a channel, those of all channels and those with an unknown key.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels refusals
  gleaner channels refusals 'US support' -n 10
  gleaner channels refusals -o json | jq 'map(.count) | add'")]
pub(crate) struct Args {
    /// Name or id
    channel: Option<String>,
    /// The most to list
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
    limit: i64,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let channels = channels(app).await?;
    let refusals = match &args.channel {
        Some(channel) => channels.refusals(channel, args.limit).await?,
        None => channels.all_refusals(args.limit).await?,
    };
    out.json(&refusals);
    if refusals.is_empty() {
        out.line("No request was rejected. When a sender says it cannot deliver, `gleaner channels test` sends a sample to the same URL.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["MINUTE", "CHANNEL", "REASON", ">STATUS", ">COUNT", "LAST FROM", "DETAIL"]);
    for refusal in &refusals {
        let unknown = || if refusal.channel.is_some() { "(deleted)".to_owned() } else { "(no such key)".to_owned() };
        table.row(vec![
            refusal.at.clone().into(),
            refusal.name.clone().unwrap_or_else(unknown).into(),
            Cell::styled(refusal.reason.clone(), WARN),
            refusal.status.to_string().into(),
            refusal.count.to_string().into(),
            refusal.last_client.clone().unwrap_or_default().into(),
            Cell::styled(refusal.detail.clone().unwrap_or_default(), DIM),
        ]);
    }
    out.listing(table.text());
    if refusals.len() as i64 == args.limit {
        out.note(paint(DIM, format!("The first {} are shown; --limit shows more.", args.limit)));
    }
    Ok(ExitCode::SUCCESS)
}
