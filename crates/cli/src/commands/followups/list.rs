//! `gleaner followups list`.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use serde_json::Value;
use tokio_postgres::types::Type;

use crate::App;
use crate::output::DIM;
use crate::table::{Cell, Table};
use crate::words::{brief, harmless, member, moment};

/// List planned and past messages: waiting ones by their time, then the newest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner followups list
  gleaner followups list --status executed -n 5
  gleaner followups list --prospect ada@example.com --json")]
pub(crate) struct Args {
    /// Only those of this prospect
    #[arg(long)]
    prospect: Option<String>,
    /// Only those with this status; exhausted ones have failed and are not tried again
    #[arg(short, long, value_parser = PossibleValuesParser::new(["pending", "processing", "executed", "failed", "cancelled", "exhausted"]))]
    status: Option<String>,
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
    limit: i64,
}

const SQL: &str = "
    select to_jsonb(a) || jsonb_build_object(
        'exhausted', a.status = 'failed' and a.due_at is null, 'due_in', extract(epoch from a.scheduled_for - clock_timestamp()),
        'contact', gleaner.contact_name(a.contact_id))
    from public.scheduled_actions as a
    where ($1::text is null or a.prospect_id = $1)
      and ($2::text is null or a.status = $2 or $2 = 'exhausted' and a.status = 'failed' and a.due_at is null)
    order by a.status = 'pending' desc, case when a.status = 'pending' then a.scheduled_for end, a.scheduled_for desc, a.id
    limit $3";

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let rows = client.query_typed(SQL, &[(&args.prospect, Type::TEXT), (&args.status, Type::TEXT), (&args.limit, Type::INT8)]).await?;
    let actions: Vec<Value> = rows.iter().map(|row| row.get(0)).collect();
    app.out.json(&actions);
    if actions.is_empty() {
        app.out.line("No follow-up fits. Plan one: gleaner followups schedule ada@example.com --in 2h --text 'Hello'");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["ID", "STATUS", "TIME", "PROSPECT", "DETAIL"]);
    for action in &actions {
        let exhausted = action["exhausted"] == true;
        let name = member(action, "contact");
        let prospect = member(action, "prospect_id");
        table.row(vec![
            member(action, "id").into(),
            (if exhausted { "exhausted".to_owned() } else { member(action, "status") }).into(),
            moment(action["due_in"].as_f64().unwrap_or_default()).into(),
            (if name.is_empty() { prospect } else { format!("{prospect} ({name})") }).into(),
            Cell::styled(detail(action), DIM),
        ]);
    }
    app.out.listing(table.text());
    Ok(ExitCode::SUCCESS)
}

/// Why it waits, failed or was called off; what was sent; or what shall be.
fn detail(action: &Value) -> String {
    let payload = &action["payload"];
    let reason =
        ["deferred_reason", "cancelled_reason", "error_message"].iter().map(|name| member(action, name)).find(|text| !text.is_empty());
    let sent = || action["message"]["text"].as_str().map(|text| format!("{}: {text}", member(&action["message"], "sink")));
    let planned = || ["text", "follow_up_intent"].iter().find_map(|name| payload[*name].as_str().map(str::to_owned));
    let text = reason.filter(|_| action["status"] != "executed").or_else(sent).or_else(planned).unwrap_or_else(|| brief(payload));
    harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
