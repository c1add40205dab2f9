//! `gleaner users passwd`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_supabase::auth::people;
use serde_json::json;

use super::{Source, as_error};
use crate::App;
use crate::output::{BOLD, paint};

/// Set a user's password, and end all their sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users passwd ada@example.com                                 shows a random password, once
  gleaner users passwd ada@example.com --password-stdin < secret.txt
  gleaner users reset ada@example.com                                  a link instead: she chooses it herself")]
pub(crate) struct Args {
    /// The user's e-mail address
    email: String,
    #[command(flatten)]
    source: Source,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let (password, made) = args.source.password()?;
    let client = app.target.client().await?;
    people::set_password(&client, &args.email, password.clone()).await.map_err(as_error)?;
    let secret = made.then(|| password.reveal());
    app.out.json(&json!({"email": args.email, "password": secret}));
    app.out.line(format!("The password of {} is set, and every session ended.", paint(BOLD, &args.email)));
    if let Some(secret) = secret {
        app.out.listing(format!("  password  {secret}  (shown once)"));
    }
    Ok(ExitCode::SUCCESS)
}
