//! `gleaner users invite` and `reset`: links to hand over, by whatever means you trust.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_server::auth::people;
use serde_json::json;

use super::told;
use crate::Desk;

/// Where the links lead.
#[derive(Debug, clap::Args)]
struct Base {
    /// The server's address as the user reaches it
    #[arg(long, env = "PUBLIC_BASE_URL", default_value = "http://127.0.0.1:54321", value_name = "URL")]
    base_url: String,
}

/// Add a user without a password, and print the link with which they choose one.
///
/// The link is good for a week and works once. For a user who never chose one it prints a new link.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users invite bob@example.com
  gleaner users invite eve@example.com --admin --base-url https://crm.example.com")]
pub struct Invite {
    /// Whom
    email: String,
    /// Make an administrator of the team
    #[arg(long)]
    admin: bool,
    #[command(flatten)]
    base: Base,
}

/// Print a link with which a user chooses a new password.
///
/// The link is good for an hour and works once. Until then the old password holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users reset bob@example.com
  gleaner users reset bob@example.com --base-url https://crm.example.com")]
pub struct Reset {
    /// Whose
    email: String,
    #[command(flatten)]
    base: Base,
}

pub async fn invite(desk: &Desk, args: Invite) -> Result<ExitCode> {
    let client = desk.place.client().await?;
    let link = people::invite(&client, &args.email, args.admin, &args.base.base_url).await.map_err(told)?;
    Ok(tell(desk, &args.email, &link))
}

pub async fn reset(desk: &Desk, args: Reset) -> Result<ExitCode> {
    let client = desk.place.client().await?;
    let link = people::reset(&client, &args.email, &args.base.base_url).await.map_err(told)?;
    Ok(tell(desk, &args.email, &link))
}

fn tell(desk: &Desk, email: &str, link: &str) -> ExitCode {
    desk.out.json(&json!({"email": email, "link": link}));
    desk.out.note(format!("For {email} and nobody else; it works once:"));
    desk.out.listing(link);
    ExitCode::SUCCESS
}
