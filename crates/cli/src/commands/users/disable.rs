//! `gleaner users disable` and `enable`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_server::people::{self, Trouble};
use serde_json::{Map, Value, json};

use super::told;
use crate::Desk;
use crate::output::{BOLD, paint};
use crate::place::ring;
use crate::words::{count, shell_word};

/// Keep a user out: no more sign-in, every session ends, and what they hold goes back in line.
///
/// It holds at once, also for access tokens already given out, and closes their sockets. Rows that belong to the user stay
/// theirs unless --assign-to names somebody.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users disable bob@example.com
  gleaner users disable bob@example.com --assign-to ada@example.com    his unfinished work is hers now
  gleaner users enable bob@example.com                                 lets him in again")]
pub(crate) struct Disable {
    /// Whom
    email: String,
    /// Who gets their unfinished work
    #[arg(long, value_name = "EMAIL")]
    assign_to: Option<String>,
}

/// Let a disabled user in again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users enable bob@example.com")]
pub(crate) struct Enable {
    /// Whom
    email: String,
}

fn why(trouble: Trouble) -> anyhow::Error {
    match trouble {
        Trouble::User(trouble) => told(trouble),
        Trouble::Queue(error) => error.into(),
        other => other.into(),
    }
}

pub(super) async fn disable(desk: &Desk, args: Disable) -> Result<ExitCode> {
    let mut client = desk.place.client().await?;
    let done = people::disable(&mut client, &args.email, args.assign_to.as_deref()).await.map_err(why)?;
    for (queue, _) in done.released.iter().chain(&done.assigned) {
        ring(&client, queue).await;
    }
    let object = |list: &[(String, usize)]| list.iter().map(|(queue, rows)| (queue.clone(), Value::from(*rows))).collect::<Map<_, _>>();
    desk.out.json(&json!({
        "email": args.email, "state": "disabled",
        "released": object(&done.released), "assigned": object(&done.assigned), "left": object(&done.left),
    }));
    desk.out.line(format!("{} is disabled, and every session ended.", paint(BOLD, &args.email)));
    for (list, what) in [(&done.released, "given back"), (&done.assigned, "handed over"), (&done.left, "still theirs")] {
        for (queue, rows) in list {
            desk.out.line(format!("  {queue}  {} {what}", count(i128::try_from(*rows).unwrap_or_default(), "item")));
        }
    }
    if !done.left.is_empty() {
        desk.out.line(format!("`gleaner users disable {} --assign-to EMAIL` hands those to somebody.", shell_word(&args.email)));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn enable(desk: &Desk, args: Enable) -> Result<ExitCode> {
    let mut client = desk.place.client().await?;
    people::enable(&mut client, &args.email).await.map_err(why)?;
    desk.out.json(&json!({"email": args.email, "state": "active"}));
    desk.out.line(format!("{} may sign in again.", paint(BOLD, &args.email)));
    Ok(ExitCode::SUCCESS)
}
