//! `gleaner channels reseal`.

use std::process::ExitCode;

use anyhow::Result;

use super::tools::{Form, channels};
use crate::App;
use crate::output::{BAD, paint};
use crate::words::count;

/// Seal every channel's secrets with the current master key.
///
/// To change the master key: put the new one before the old one, in GLEANER_MASTER_KEY (separated by a comma) or in
/// master.key (a line each), on every server; reseal; then take the old one away. Everything works meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  GLEANER_MASTER_KEY=\"$(cat new.key),$(cat old.key)\" gleaner channels reseal")]
pub(crate) struct Args {
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let done = channels(app).await?.reseal().await?;
    out.json(&done);
    out.line(match done.resealed {
        0 => "Every channel that opens is sealed with the current master key.".to_owned(),
        n => format!("{} sealed with the current master key.", count(n as i64, "channel")),
    });
    for locked in &done.locked {
        out.listing(format!("{} {locked}", paint(BAD, "!")));
    }
    if done.locked.is_empty() {
        out.line("The others may be taken away.");
    }
    Ok(if done.locked.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
