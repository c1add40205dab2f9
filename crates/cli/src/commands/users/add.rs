//! `gleaner users add`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_supabase::auth::people;
use serde_json::json;

use super::{Source, as_error};
use crate::App;
use crate::output::{BOLD, paint};

/// Add a user, and its row in `sales`.
///
/// A row of `sales` that has this address and no user yet is linked to the user. Both or neither are added.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users add ada@example.com                                      shows a random password, once
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

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let (password, made) = args.source.password()?;
    let client = app.target.client().await?;
    let added = people::add(&client, &args.email, Some(password.clone()), args.admin).await.map_err(as_error)?;
    let secret = made.then(|| password.reveal());
    app.out
        .json(&json!({"id": added.id, "email": added.email, "sales_id": added.sales_id, "administrator": args.admin, "password": secret}));
    let role = if args.admin { "administrator" } else { "member" };
    app.out.line(format!("Added {}, {role} of the team.", paint(BOLD, &added.email)));
    if let Some(secret) = secret {
        app.out.listing(format!("  password  {secret}  (shown once; `gleaner users passwd` sets another)"));
    }
    Ok(ExitCode::SUCCESS)
}
