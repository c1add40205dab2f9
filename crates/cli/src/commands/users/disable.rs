//! `gleaner users disable` and `enable`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_server::people::{self, Trouble};
use serde_json::{Map, Value, json};

use super::as_error;
use crate::App;
use crate::output::{BOLD, paint};
use crate::target::notify_workers;
use crate::words::{count, shell_word};

/// Disable a user: end all sessions, refuse sign-in, and release the items they hold.
///
/// It takes effect at once, also for access tokens already issued, and closes their sockets. Rows that belong to the user stay
/// theirs unless --assign-to names another user.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users disable bob@example.com
  gleaner users disable bob@example.com --assign-to ada@example.com    assigns his unfinished work
  gleaner users enable bob@example.com                                 allows sign-in again")]
pub(crate) struct Disable {
    /// The user's e-mail address
    email: String,
    /// The user who gets their unfinished work
    #[arg(long, value_name = "EMAIL")]
    assign_to: Option<String>,
}

/// Enable a disabled user.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users enable bob@example.com")]
pub(crate) struct Enable {
    /// The user's e-mail address
    email: String,
}

fn why(trouble: Trouble) -> anyhow::Error {
    match trouble {
        Trouble::User(trouble) => as_error(trouble),
        Trouble::Queue(error) => error.into(),
        other => other.into(),
    }
}

pub(super) async fn disable(app: &App, args: Disable) -> Result<ExitCode> {
    let mut client = app.target.client().await?;
    let done = people::disable(&mut client, &args.email, args.assign_to.as_deref()).await.map_err(why)?;
    for (queue, _) in done.released.iter().chain(&done.assigned) {
        notify_workers(&client, queue).await;
    }
    let object = |list: &[(String, usize)]| list.iter().map(|(queue, rows)| (queue.clone(), Value::from(*rows))).collect::<Map<_, _>>();
    app.out.json(&json!({
        "email": args.email, "state": "disabled",
        "released": object(&done.released), "assigned": object(&done.assigned), "left": object(&done.left),
    }));
    app.out.line(format!("{} is disabled, and every session ended.", paint(BOLD, &args.email)));
    for (list, what) in [(&done.released, "given back"), (&done.assigned, "handed over"), (&done.left, "still theirs")] {
        for (queue, rows) in list {
            app.out.line(format!("  {queue}  {} {what}", count(i128::try_from(*rows).unwrap_or_default(), "item")));
        }
    }
    if !done.left.is_empty() {
        app.out.line(format!("`gleaner users disable {} --assign-to EMAIL` gives them to another user.", shell_word(&args.email)));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn enable(app: &App, args: Enable) -> Result<ExitCode> {
    let mut client = app.target.client().await?;
    people::enable(&mut client, &args.email).await.map_err(why)?;
    app.out.json(&json!({"email": args.email, "state": "active"}));
    app.out.line(format!("{} may sign in again.", paint(BOLD, &args.email)));
    Ok(ExitCode::SUCCESS)
}
