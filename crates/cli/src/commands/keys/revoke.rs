//! `gleaner keys revoke`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner_supabase::auth::api_keys;
use serde_json::json;

use crate::App;
use crate::output::{BOLD, paint};

/// Revoke a key. Servers notice within five seconds.
///
/// Items held with the key become due again when their leases end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner keys revoke whisper
  gleaner keys revoke 5f1c2a9e-…             by its id, or by the key itself")]
pub(crate) struct Args {
    /// Its name or id, or the key itself
    key: String,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    if !api_keys::revoke(&client, &args.key).await? {
        bail!("there is no living key of that name\n  `gleaner keys list` lists them");
    }
    app.out.json(&json!({"revoked": true}));
    app.out.line(paint(BOLD, "Revoked."));
    Ok(ExitCode::SUCCESS)
}
