//! `gleaner dumps show`: what was found in a dump.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{size, standing};
use crate::App;
use crate::output::{DIM, of_state, paint};
use crate::words::harmless;

/// Show a dump: its file, how far it is, and the insights, entities and connections that were found.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner dumps show 1f0c…
  gleaner dumps show 1f0c… --json")]
pub(crate) struct Args {
    /// The dump's id
    dump: Uuid,
}

const SQL: &str = "
    select to_jsonb(d) - 'body_md' || jsonb_build_object('characters', length(d.body_md), 'workspace', w.name,
        'state', q.processing_state, 'progress', q.progress, 'message', q.result ->> 'message', 'error', q.error_message, 'summary', q.result ->> 'summary',
        'blocks', (select coalesce(jsonb_agg(to_jsonb(k) order by k.confidence_score desc, k.id), '[]') from public.blocks as k where k.dump_id = d.id),
        'context_items', (select coalesce(jsonb_agg(to_jsonb(c) order by c.kind, c.label), '[]') from public.context_items as c
                          join public.context_item_sources as s on s.context_item_id = c.id where s.dump_id = d.id),
        'relationships', (select coalesce(jsonb_agg(to_jsonb(r) || jsonb_build_object('from', coalesce(fb.title, fc.label), 'to', coalesce(tb.title, tc.label))
                                                    order by r.strength desc, r.id), '[]')
                          from public.substrate_relationships as r
                          left join public.blocks as fb on fb.id = r.from_id left join public.context_items as fc on fc.id = r.from_id
                          left join public.blocks as tb on tb.id = r.to_id left join public.context_items as tc on tc.id = r.to_id
                          where r.dump_id = d.id))
    from public.raw_dumps as d
    join public.baskets as b on b.id = d.basket_id
    join public.workspaces as w on w.id = b.workspace_id
    left join public.agent_processing_queue as q on q.dump_id = d.id
    where d.id = $1";

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let row = client.query_typed(SQL, &[(&args.dump, Type::UUID)]).await?.pop();
    let dump: Value = row.with_context(|| format!("there is no dump {}; `gleaner dumps list` lists them", args.dump))?.get(0);
    app.out.json(&dump);
    let text = |value: &Value, key: &str| harmless(value[key].as_str().unwrap_or_default());
    let (state, progress) = (dump["state"].as_str().unwrap_or("not queued"), &dump["progress"]);
    let detail =
        standing(state, progress["stage"].as_str(), progress["percent"].as_f64(), dump["message"].as_str(), dump["error"].as_str());
    let mut lines = Vec::new();
    if let Some(name) = dump["file_name"].as_str() {
        lines.push(format!("{}  {}  {}", harmless(name), size(dump["file_size"].as_i64().unwrap_or_default()), text(&dump, "media_type")));
    }
    lines.push(format!("{}  {}", paint(of_state(state), state), harmless(&detail)));
    if dump["summary"].is_string() {
        lines.push(format!("\n{}", text(&dump, "summary")));
    }
    let list = |key: &str| dump[key].as_array().cloned().unwrap_or_default();
    let section =
        |title: &str, entries: Vec<String>| if entries.is_empty() { Vec::new() } else { [vec![format!("\n{title}")], entries].concat() };
    lines.extend(section(
        "INSIGHTS",
        list("blocks")
            .iter()
            .map(|block| format!("  {}  {}", paint(DIM, format!("{:<9}", text(block, "semantic_type"))), text(block, "content")))
            .collect(),
    ));
    lines.extend(section(
        "ENTITIES",
        list("context_items")
            .iter()
            .map(|item| format!("  {}  {}", paint(DIM, format!("{:<10}", text(item, "kind"))), text(item, "label")))
            .collect(),
    ));
    let edge = |edge: &Value| format!("  {} {} {}", text(edge, "from"), paint(DIM, text(edge, "relationship_type")), text(edge, "to"));
    lines.extend(section("CONNECTIONS", list("relationships").iter().map(edge).collect()));
    app.out.listing(lines.join("\n"));
    Ok(ExitCode::SUCCESS)
}
