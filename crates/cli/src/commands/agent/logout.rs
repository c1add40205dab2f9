//! `gleaner agent logout`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner_agent::wire::session;
use gleaner_agent::wire::sessions::{self, Kept};
use serde_json::json;

use crate::App;

/// End a session of this machine, here and on the server.
///
/// Your sessions on other machines stay valid. Agents that still run here are refused at their next call.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner agent logout                                  the only one there is
  gleaner agent logout https://x.supabase.co            of several; `gleaner agent status` lists them
  gleaner agent logout --all
  gleaner agent logout --home ~/.gleaner-work           the session of another home")]
pub(super) struct Args {
    /// The server to sign out from; optional when there is one session
    #[arg(value_name = "URL", conflicts_with = "all")]
    url: Option<String>,
    /// End all sessions of this home
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let all = sessions::all(app.target.home()?.path())?;
    let chosen = chosen(&all, &args)?;
    let mut ended = Vec::new();
    for kept in chosen {
        if session::logout(&kept.path).await? {
            ended.push(&kept.session);
        }
    }
    let urls: Vec<&str> = ended.iter().map(|session| session.url.as_str()).collect();
    app.out.json(&json!({"signed_out": !urls.is_empty(), "urls": urls}));
    for session in &ended {
        app.out.line(format!("signed out from {} ({})", session.url, session.email));
    }
    if ended.is_empty() {
        app.out.line("not signed in");
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen<'a>(all: &'a [Kept], args: &Args) -> Result<Vec<&'a Kept>> {
    let there = || all.iter().map(|kept| format!("  gleaner agent logout {}", kept.session.url)).collect::<Vec<_>>().join("\n");
    match &args.url {
        Some(url) => match all.iter().find(|kept| kept.session.url == sessions::plain(url)) {
            Some(kept) => Ok(vec![kept]),
            None if all.is_empty() => Ok(Vec::new()),
            None => bail!("not signed in to {url}; sessions exist for:\n{}", there()),
        },
        None if args.all || all.len() < 2 => Ok(all.iter().collect()),
        None => bail!("there are several sessions; say which, or --all:\n{}", there()),
    }
}
