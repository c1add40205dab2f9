//! `gleaner replay`.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use gleaner_ingest::sealing::MasterKeys;
use gleaner_intake::channels::Channels;
use gleaner_intake::files::Files;
use gleaner_intake::webhooks::replay::{How, Outcome, Replayed, Replayer, Which};
use uuid::Uuid;

use crate::App;
use crate::output::{BAD, DIM, GOOD, PLAIN, WARN, paint};
use crate::words::{brief, count, harmless};

/// Parse kept requests again, after a bug was fixed.
///
/// Accepted requests are kept for a while, byte for byte. A replay parses them with this version and stores events that are
/// missing. Events that exist stay as they are; with --update it is rewritten, unless its processing has begun. Signatures
/// are not checked again. The exit code is 1 when a request could not be stored.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner replay --channel 'US support' --since yesterday --dry-run     what would happen
  gleaner replay --unread --since '2026-11-16 09:00'                    those that brought nothing at the time
  gleaner replay 019a8f4e-2c1b-7d3e-9f00-0123456789ab --update
  gleaner replay --channel 'US support' --json | jq '.[] | select(.failed)'")]
pub(crate) struct Args {
    /// Ids of kept requests
    #[arg(conflicts_with_all = ["channel", "since", "until", "unread"])]
    ids: Vec<Uuid>,
    /// Name or id of a channel
    #[arg(long)]
    channel: Option<String>,
    /// Received at this time or later, such as 'yesterday' or '2026-11-16 09:00'
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Received before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only requests that stored no activity
    #[arg(long)]
    unread: bool,
    /// Store nothing; print what would be stored
    #[arg(long)]
    dry_run: bool,
    /// Rewrite activities that exist and still wait
    #[arg(long, conflicts_with = "dry_run")]
    update: bool,
}

/// Requests that are fetched at a time.
const SLICE: i64 = 500;

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    if args.ids.is_empty() && args.channel.is_none() && args.since.is_none() && args.until.is_none() && !args.unread {
        bail!("say which requests: ids, or --channel, --since, --until, --unread");
    }
    let home = app.target.home()?;
    let pool = gleaner::pool(&app.target.url().await?, 4)?;
    let keys = MasterKeys::load(home.path())?;
    let replayer = Replayer { channels: Channels::new(pool.clone(), keys), files: Files::from_env(home.path())?, pool };
    let how = How { dry_run: args.dry_run, update: args.update };
    let mut all = Vec::new();
    for id in &args.ids {
        let replayed = replayer.replay(*id, how).await?;
        all.push(replayed.with_context(|| format!("request {id} is not kept; it may have been pruned, or never let in"))?);
        tell(app, all.last());
    }
    if args.ids.is_empty() {
        let channel = match &args.channel {
            Some(name) => Some(replayer.channels.get(name).await?.channel.id),
            None => None,
        };
        let which = Which { channel, since: args.since, until: args.until, without_activity: args.unread };
        let mut after = None;
        loop {
            let found = replayer.find(&which, after, SLICE).await.map_err(readable)?;
            for id in &found {
                // `None`: pruned in the meantime.
                all.extend(replayer.replay(*id, how).await?);
                tell(app, all.last());
            }
            after = found.last().copied();
            if found.len() < usize::try_from(SLICE)? {
                break;
            }
        }
    }
    app.out.json(&all);
    sum_up(app, &all);
    Ok(if all.iter().any(|one| one.failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn readable(error: gleaner_http::database::Error) -> anyhow::Error {
    if error.code().is_some_and(|code| code.code().starts_with("22")) {
        anyhow::anyhow!("--since or --until is not a time; write it like 'yesterday' or '2026-11-16 09:00'")
    } else {
        error.into()
    }
}

fn tell(app: &App, replayed: Option<&Replayed>) {
    let Some(one) = replayed else { return };
    let channel = one.channel.as_deref().unwrap_or("(no channel)");
    let head = format!("{} {}", one.request, paint(DIM, format!("{}, {}", one.received_at, harmless(channel))));
    if let Some(note) = &one.note {
        app.out.line(format!("{head}\n  {}", paint(if one.failed { BAD } else { DIM }, harmless(note))));
        return;
    }
    app.out.line(head);
    for event in &one.events {
        let (word, style) = match event.outcome {
            Outcome::WouldStore => ("would be stored", GOOD),
            Outcome::WouldRepeat => ("is there already", DIM),
            Outcome::Stored => ("stored", GOOD),
            Outcome::Unchanged => ("there already, unchanged", DIM),
            Outcome::Updated => ("updated", GOOD),
            Outcome::Begun => ("there already, being processed: unchanged", WARN),
        };
        let activity = event.activity.map(|id| format!(" {id}")).unwrap_or_default();
        let kind = serde_json::to_value(event.kind).map(|kind| brief(&kind)).unwrap_or_default();
        let content: String = brief(&event.raw_data["content"]).chars().take(60).collect();
        app.out.line(format!("  {}{activity}  {}", paint(style, word), paint(PLAIN, format!("{kind}: {content}"))));
    }
}

fn sum_up(app: &App, all: &[Replayed]) {
    let with = |outcome: Outcome| all.iter().flat_map(|one| &one.events).filter(|event| event.outcome == outcome).count() as i64;
    let failed = all.iter().filter(|one| one.failed).count() as i64;
    let mut parts: Vec<String> = [
        (Outcome::WouldStore, "would be stored"),
        (Outcome::Stored, "stored"),
        (Outcome::Updated, "updated"),
        (Outcome::WouldRepeat, "there already"),
        (Outcome::Unchanged, "unchanged"),
        (Outcome::Begun, "being processed"),
    ]
    .into_iter()
    .filter(|(outcome, _)| with(*outcome) > 0)
    .map(|(outcome, words)| format!("{} {words}", with(outcome)))
    .collect();
    if failed > 0 {
        parts.push(format!("{} failed", count(failed, "request")));
    }
    let events = if parts.is_empty() { "nothing to store".to_owned() } else { parts.join(", ") };
    app.out.line(format!("{} read again: {events}.", count(all.len() as i64, "request")));
}
