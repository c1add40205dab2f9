//! `gleaner users passwd`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_supabase::auth::people;
use serde_json::json;

use super::{Source, told};
use crate::Desk;
use crate::output::{BOLD, paint};

/// Set a user's password; every session of theirs ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users passwd ada@example.com                                 tells a random password, once
  gleaner users passwd ada@example.com --password-stdin < secret.txt
  gleaner users reset ada@example.com                                  a link instead: she chooses it herself")]
pub(crate) struct Args {
    /// Whose
    email: String,
    #[command(flatten)]
    source: Source,
}

pub(super) async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let (password, made) = args.source.password()?;
    let client = desk.place.client().await?;
    people::set_password(&client, &args.email, password.clone()).await.map_err(told)?;
    let secret = made.then(|| password.reveal());
    desk.out.json(&json!({"email": args.email, "password": secret}));
    desk.out.line(format!("The password of {} is set, and every session ended.", paint(BOLD, &args.email)));
    if let Some(secret) = secret {
        desk.out.listing(format!("  password  {secret}  (told once)"));
    }
    Ok(ExitCode::SUCCESS)
}
