//! `gleaner users invite` and `reset`: links to hand over, by whatever means you trust.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use gleaner_supabase::auth::people;
use serde_json::json;

use super::as_error;
use crate::App;
use crate::serving::Serving;

/// Where the links lead.
#[derive(Debug, clap::Args)]
struct Base {
    /// The server's address as the user reaches it [default: that of the server that runs in this home]
    #[arg(long, env = "PUBLIC_BASE_URL", value_name = "URL")]
    base_url: Option<String>,
}

impl Base {
    fn url(&self, app: &App) -> Result<String> {
        if let Some(url) = self.base_url.clone().filter(|url| !url.is_empty()) {
            return Ok(url);
        }
        let home = app.target.home()?;
        let serving = Serving::find(home.path()).with_context(|| {
            format!(
                "no server runs in {}, so there is no address for the link\n  Start one with `gleaner up` or `gleaner serve`, or name it with --base-url",
                home.path().display()
            )
        })?;
        Ok(serving.base())
    }
}

/// Add a user without a password, and print the link with which they choose one.
///
/// The link is valid for a week and works once. For a user who never chose one it prints a new link.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users invite bob@example.com
  gleaner users invite eve@example.com --admin --base-url https://crm.example.com")]
pub(crate) struct Invite {
    /// The user's e-mail address
    email: String,
    /// Make an administrator of the team
    #[arg(long)]
    admin: bool,
    #[command(flatten)]
    base: Base,
}

/// Print a link with which a user chooses a new password.
///
/// The link is valid for an hour and works once. The old password stays valid until then.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users reset bob@example.com
  gleaner users reset bob@example.com --base-url https://crm.example.com")]
pub(crate) struct Reset {
    /// The user's e-mail address
    email: String,
    #[command(flatten)]
    base: Base,
}

pub(super) async fn invite(app: &App, args: Invite) -> Result<ExitCode> {
    let base = args.base.url(app)?;
    let client = app.target.client().await?;
    let link = people::invite(&client, &args.email, args.admin, &base).await.map_err(as_error)?;
    Ok(tell(app, &args.email, &link))
}

pub(super) async fn reset(app: &App, args: Reset) -> Result<ExitCode> {
    let base = args.base.url(app)?;
    let client = app.target.client().await?;
    let link = people::reset(&client, &args.email, &base).await.map_err(as_error)?;
    Ok(tell(app, &args.email, &link))
}

fn tell(app: &App, email: &str, link: &str) -> ExitCode {
    app.out.json(&json!({"email": email, "link": link}));
    app.out.note(format!("Send this link to {email} only; it works once:"));
    app.out.listing(link);
    ExitCode::SUCCESS
}
