//! `gleaner items explain`.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::App;
use crate::output::{BOLD, DIM, GOOD, WARN, of_state, paint};
use crate::target::Named;
use crate::words::member;

/// Explain why an item is or is not claimable, and when it will be.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner items explain jobs 42
  gleaner items explain activities 1f0c… --owner 7    as an agent of owner 7 would find it")]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
    /// The item's key
    id: String,
    /// Explain for an agent of this owner
    #[arg(long)]
    owner: Option<String>,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let (client, acts) = app.target.acts(&args.named).await?;
    if args.owner.is_some() && acts.declaration().owner.is_none() {
        bail!("queue {} has no owners: leave --owner out", acts.name());
    }
    let Some(why) = acts.explain(&client, &args.id, args.owner.as_deref()).await? else {
        bail!("there is no item {} in {}\n  `gleaner items list {}` lists what there is", args.id, acts.name(), acts.name());
    };
    app.out.json(&why);
    let state = member(&why, "state");
    let verdict = if why["claimable"].as_bool() == Some(true) { paint(GOOD, "claimable now") } else { paint(WARN, "not claimable now") };
    let whose = args.owner.map(|owner| format!(" by owner {owner}")).unwrap_or_default();
    app.out.listing(format!(
        "{} is {}, {verdict}{whose}: {}",
        paint(BOLD, format!("{} {}", acts.name(), args.id)),
        paint(of_state(&state), &state),
        member(&why, "reason")
    ));
    for name in ["claimable_at", "class", "owner", "agent", "attempts", "lost", "due_at", "open_at", "deadline_at"] {
        if !why[name].is_null() {
            app.out.listing(format!("  {}  {}", paint(DIM, format!("{name:12}")), member(&why, name)));
        }
    }
    Ok(ExitCode::SUCCESS)
}
