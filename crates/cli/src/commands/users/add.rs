//! `gleaner users add`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_supabase::auth::people;
use serde_json::json;

use super::{Source, told};
use crate::Desk;
use crate::output::{BOLD, paint};

/// Add a user, and its row in `sales`.
///
/// A row of `sales` that has this address and no user yet becomes the user's. Both or nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users add ada@example.com                                      tells a random password, once
  gleaner users add ada@example.com --admin --password-stdin < secret.txt
  pass show crm/ada | gleaner users add ada@example.com --password-stdin")]
pub(crate) struct Args {
    /// The address to sign in with
    email: String,
    #[command(flatten)]
    source: Source,
    /// Make an administrator of the team
    #[arg(long)]
    admin: bool,
}

pub(super) async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let (password, made) = args.source.password()?;
    let client = desk.place.client().await?;
    let added = people::add(&client, &args.email, Some(password.clone()), args.admin).await.map_err(told)?;
    let secret = made.then(|| password.reveal());
    desk.out
        .json(&json!({"id": added.id, "email": added.email, "sales_id": added.sales_id, "administrator": args.admin, "password": secret}));
    let role = if args.admin { "administrator" } else { "member" };
    desk.out.line(format!("Added {}, {role} of the team.", paint(BOLD, &added.email)));
    if let Some(secret) = secret {
        desk.out.listing(format!("  password  {secret}  (told once; `gleaner users passwd` sets another)"));
    }
    Ok(ExitCode::SUCCESS)
}
