//! `gleaner followups schedules …`: messages that recur.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use gleaner_systems::schedules::Recurrence;
use serde_json::{Value, json};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::cancel::tell;
use super::schedule::What;
use crate::App;
use crate::output::DIM;
use crate::table::{Cell, Table};
use crate::words::{harmless, member, moment};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner followups schedules add ada@example.com --cron '0 9 * * MON' --zone Europe/Berlin --intent 'ask how it goes'
  gleaner followups schedules list
  gleaner followups schedules pause 1f0c…")]
pub(crate) enum Command {
    Add(Box<Add>),
    List(List),
    /// Stop making follow-ups until resumed
    #[command(after_help = "Examples:\n  gleaner followups schedules pause 1f0c…")]
    Pause(Which),
    /// Go on from now; what was due meanwhile is not made up for
    #[command(after_help = "Examples:\n  gleaner followups schedules resume 1f0c…")]
    Resume(Which),
    /// Delete schedules; follow-ups that they made stay
    #[command(after_help = "Examples:\n  gleaner followups schedules remove 1f0c…")]
    Remove(Which),
}

/// Plan a message that recurs.
///
/// Each occurrence is a follow-up of its own: a reply calls it off, quiet hours and limits hold for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner followups schedules add ada@example.com --cron '0 9 * * MON' --zone Europe/Berlin --intent 'ask how it goes'
  gleaner followups schedules add contact:42 --cron '0 10 */3 * *' --text 'Did you get my offer?' --until-reply
  gleaner followups schedules add contact:42 --cron @daily --text 'Good morning' --missed skip")]
pub(crate) struct Add {
    /// Whom: an e-mail address, a number, contact:ID, or the id that another system has for them
    prospect: String,
    /// When: minute, hour, day of month, month, day of week; or @daily, @weekly, @monthly
    #[arg(long)]
    cron: String,
    /// The time zone in which that is meant, such as Europe/Berlin
    #[arg(long, default_value = "UTC")]
    zone: String,
    /// What to do about occurrences that were missed while no agent ran
    #[arg(long, default_value = "latest", value_parser = PossibleValuesParser::new(["skip", "latest", "all"]))]
    missed: String,
    /// With --missed all: at most this many, the latest
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=1000))]
    missed_limit: i32,
    /// Pause it when the prospect replies
    #[arg(long)]
    until_reply: bool,
    /// No occurrence after this time, as PostgreSQL reads it
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// A name for people
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    what: What,
}

/// List the schedules, the next first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  gleaner followups schedules list -n 5")]
pub(crate) struct List {
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
    limit: i64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Their ids
    #[arg(required = true)]
    ids: Vec<Uuid>,
}

pub(super) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::Add(args) => add(app, *args).await,
        Command::List(args) => list(app, args).await,
        Command::Pause(which) => act(app, which, "paused", "gleaner.cancel_schedules($1, 'paused by hand')").await,
        Command::Resume(which) => act(app, which, "resumed", "gleaner.requeue_schedules($1)").await,
        Command::Remove(which) => remove(app, which).await,
    }
}

async fn add(app: &App, args: Add) -> Result<ExitCode> {
    Recurrence::read(&args.cron, &args.zone).map_err(anyhow::Error::msg)?;
    let payload = args.what.payload()?;
    let options = json!({
        "name": args.name, "missed": args.missed, "missed_limit": args.missed_limit, "until_reply": args.until_reply,
        "ends_at": args.until, "action_type": args.what.kind,
    });
    let client = app.target.client().await?;
    let sql = "select to_jsonb(s) from public.schedule_recurring_followup($1, $2, $3, $4, $5) as s";
    let params: [(&(dyn ToSql + Sync), Type); 5] = [
        (&args.prospect, Type::TEXT),
        (&args.cron, Type::TEXT),
        (&args.zone, Type::TEXT),
        (&payload, Type::JSONB),
        (&options, Type::JSONB),
    ];
    let rows = client.query_typed(sql, &params).await?;
    let schedule: Value = rows.first().context("the schedule was not stored")?.get(0);
    app.out.json(&schedule);
    app.out.line(format!("{} recurs at {:?} in {}, for {}", member(&schedule, "id"), args.cron, args.zone, args.prospect));
    Ok(ExitCode::SUCCESS)
}

const LIST: &str = "
    select to_jsonb(s) || jsonb_build_object(
        'next_in', case when s.status = 'active' and s.next_at > s.created_at then extract(epoch from s.next_at - clock_timestamp()) end)
    from public.followup_schedules as s
    order by s.status not in ('active', 'working'), s.next_at, s.id
    limit $1";

async fn list(app: &App, args: List) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let rows = client.query_typed(LIST, &[(&args.limit, Type::INT8)]).await?;
    let schedules: Vec<Value> = rows.iter().map(|row| row.get(0)).collect();
    app.out.json(&schedules);
    if schedules.is_empty() {
        app.out.line("Nothing recurs. Plan it: gleaner followups schedules add ada@example.com --cron '0 9 * * MON' --text 'Hello'");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["ID", "STATUS", "NEXT", "CRON", "ZONE", "PROSPECT", "DETAIL"]);
    for schedule in &schedules {
        let next = schedule["next_in"].as_f64().map(moment).unwrap_or_default();
        let told = ["paused_reason", "error_message", "name"].iter().map(|name| member(schedule, name)).find(|text| !text.is_empty());
        let planned = || ["text", "follow_up_intent"].iter().find_map(|name| schedule["payload"][*name].as_str().map(str::to_owned));
        let detail = told.or_else(planned).unwrap_or_default();
        let mut cells: Vec<Cell> = vec![member(schedule, "id").into(), member(schedule, "status").into(), next.into()];
        cells.extend(["cron", "time_zone", "prospect_id"].iter().map(|name| Cell::from(member(schedule, name))));
        cells.push(Cell::styled(harmless(&detail), DIM));
        table.row(cells);
    }
    app.out.listing(table.text());
    Ok(ExitCode::SUCCESS)
}

async fn act(app: &App, which: Which, done: &str, call: &str) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let sql = format!("select r.id, r.outcome, r.status from {call} as r");
    let rows = client.query_typed(&sql, &[(&which.ids, Type::UUID_ARRAY)]).await?;
    Ok(tell(app, done, &rows))
}

async fn remove(app: &App, which: Which) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let sql = "
        with removed as (delete from public.followup_schedules as s where s.id = any ($1) returning s.id)
        select u.id, case when r.id is null then 'gone' else 'done' end, null::text
        from unnest($1::uuid[]) as u (id) left join removed as r on r.id = u.id";
    let rows = client.query_typed(sql, &[(&which.ids, Type::UUID_ARRAY)]).await?;
    Ok(tell(app, "removed", &rows))
}
