//! `gleaner agent logout`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_agent::wire::session;
use serde_json::json;

use crate::Desk;

/// End the session of this machine, here and on the server.
///
/// Sessions of yours elsewhere stand. Agents that still run here are refused at their next call.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner agent logout
  gleaner agent logout --home ~/.gleaner-work       the session of another home")]
pub struct Args {}

pub async fn run(desk: &Desk, _: Args) -> Result<ExitCode> {
    let ended = session::logout(&session::path(desk.place.home()?.path())).await?;
    desk.out.json(&json!({"signed_out": ended}));
    desk.out.line(if ended { "signed out" } else { "nobody was signed in" });
    Ok(ExitCode::SUCCESS)
}
