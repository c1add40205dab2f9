//! `gleaner dumps list`: the newest dumps, and how far they are.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;
use tokio_postgres::types::Type;

use super::{size, standing};
use crate::App;
use crate::output::of_state;
use crate::table::{Cell, Table};
use crate::words::{harmless, moment};

/// List dumps, the newest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner dumps list
  gleaner dumps list --workspace Default -n 5 --json")]
pub(crate) struct Args {
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
    /// Only those of this workspace, by name
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
}

const SQL: &str = "
    select jsonb_build_object('id', d.id, 'name', d.file_name, 'text', left(d.body_md, 60), 'size', coalesce(d.file_size, octet_length(d.body_md)),
               'media_type', d.media_type, 'workspace', w.name, 'state', q.processing_state, 'progress', q.progress, 'message', q.result ->> 'message',
               'error', q.error_message, 'created_at', d.created_at),
           extract(epoch from (now() - d.created_at))::float8
    from public.raw_dumps as d
    join public.baskets as b on b.id = d.basket_id
    join public.workspaces as w on w.id = b.workspace_id
    left join public.agent_processing_queue as q on q.dump_id = d.id
    where $1::text is null or w.name = $1
    order by d.created_at desc, d.id
    limit $2";

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let rows = client.query_typed(SQL, &[(&args.workspace, Type::TEXT), (&args.limit, Type::INT8)]).await?;
    let dumps: Vec<(Value, f64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    app.out.json(&dumps.iter().map(|(dump, _)| dump).collect::<Vec<_>>());
    if dumps.is_empty() {
        app.out.line("There are no dumps. Add one: gleaner dumps add notes.md");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["ID", "NAME", "SIZE", "ADDED", "STATE", "DETAIL"]);
    for (dump, age) in &dumps {
        let text = |key: &str| dump[key].as_str();
        let name = text("name").or(text("text")).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let (state, progress) = (text("state").unwrap_or("not queued"), &dump["progress"]);
        let detail = standing(state, progress["stage"].as_str(), progress["percent"].as_f64(), text("message"), text("error"));
        table.row(vec![
            text("id").unwrap_or_default().into(),
            harmless(&name).into(),
            size(dump["size"].as_i64().unwrap_or_default()).into(),
            moment(-age).into(),
            Cell::styled(state, of_state(state)),
            harmless(&detail).into(),
        ]);
    }
    app.out.listing(table.text());
    Ok(ExitCode::SUCCESS)
}
