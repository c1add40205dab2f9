//! `gleaner agent status`.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use gleaner_agent::status::client::{Error, Remote};
use gleaner_agent::wire::session::Session;
use gleaner_agent::wire::sessions::{self, Kept};
use serde_json::{Value, json};

use super::{Named, show};
use crate::App;
use crate::output::DIM;
use crate::table::{Cell, Table};
use crate::words::span;

/// Show what the agents of this machine do.
///
/// And who is signed in where. The exit code is 1 when none runs or one is unhealthy, as health checks of containers expect.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner agent status
  gleaner agent status laptop
  gleaner agent status --json | jq '.[].state'
  gleaner agent status --sessions                   only who is signed in where
  gleaner agent status -q || echo 'not well'")]
pub(super) struct Args {
    #[command(flatten)]
    named: Named,
    /// Only the sessions of this home; the exit code is 1 when there is none
    #[arg(long, conflicts_with = "name")]
    sessions: bool,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let home = app.target.home()?;
    let signed_in = sessions::all(home.path())?;
    if args.sessions {
        app.out.json(&signed_in.iter().map(shown).collect::<Vec<_>>());
        app.out.line(if signed_in.is_empty() { "not signed in".into() } else { listed(&signed_in) });
        return Ok(if signed_in.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let mut all = Remote::all(home.path()).await;
    if all.is_empty() {
        app.out.json(&json!([]));
        if !signed_in.is_empty() {
            app.out.line(listed(&signed_in));
        }
        bail!(Error::NoAgent { home: home.path().display().to_string() });
    }
    if let Some(name) = &args.named.name {
        let there = all.iter().map(|(remote, _)| remote.name().to_owned()).collect();
        all.retain(|(remote, _)| remote.name() == name);
        if all.is_empty() {
            bail!(Error::Unknown { name: name.clone(), there });
        }
    }
    let well = all.iter().all(|(_, view)| view["health"]["healthy"] == true);
    app.out.json(&all.iter().map(|(remote, view)| with_url(remote, view)).collect::<Vec<_>>());
    let mut parts: Vec<String> = all.iter().map(|(remote, view)| show::lines(view, remote.url())).collect();
    if !signed_in.is_empty() && args.named.name.is_none() {
        parts.push(listed(&signed_in));
    }
    app.out.line(parts.join("\n\n"));
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is no secret of a session.
fn shown(kept: &Kept) -> Value {
    let Session { url, email, user_id, expires_at, signed_in_at, .. } = &kept.session;
    json!({"url": url, "email": email, "user_id": user_id, "signed_in_at": signed_in_at, "token_expires_at": expires_at, "session": kept.path})
}

fn listed(all: &[Kept]) -> String {
    let mut table = Table::new(&["signed in to", "as", ">since"]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    for kept in all {
        // Sessions from before this was recorded have no value.
        let since = match kept.session.signed_in_at {
            0 => "–".to_owned(),
            at => format!("{} ago", span((now - at as f64).max(0.0))),
        };
        table.row(vec![kept.session.url.as_str().into(), kept.session.email.as_str().into(), Cell::styled(since, DIM)]);
    }
    table.text()
}

fn with_url(remote: &Remote, view: &Value) -> Value {
    let mut view = view.clone();
    view["url"] = json!(remote.url());
    view
}
