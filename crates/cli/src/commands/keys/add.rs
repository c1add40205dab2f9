//! `gleaner keys add`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::ValueEnum;
use gleaner_supabase::auth::api_keys::{self, Kind, New};
use serde_json::json;

use crate::App;
use crate::output::{BOLD, paint};
use crate::target::seconds;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// An agent: sees only the rows it holds
    Worker,
    /// Everything, past row-level security
    Service,
    /// For browsers: no rights of its own until a user signs in
    Anon,
}

/// Make a key for a program. It is shown once; only a hash is stored.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner keys add whisper                                       a worker for every queue and kind
  gleaner keys add whisper --queue activities --kind call --kind sms
  gleaner keys add nightly-report --role service --valid '90 days'
  export SUPABASE_KEY=\"$(gleaner keys add laptop -q)\"")]
pub(crate) struct Args {
    /// Its name
    name: String,
    /// What it may do
    #[arg(long, value_enum, default_value_t = Role::Worker)]
    role: Role,
    /// A queue it may work; several may be named. Without any: every queue
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// A kind of work it may claim; several may be named. Without any: every kind
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// How long it is valid, such as '30 days' [default: until it is revoked]
    #[arg(long, value_name = "TIME")]
    valid: Option<String>,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    if args.role != Role::Worker && !(args.queues.is_empty() && args.kinds.is_empty()) {
        bail!("--queue and --kind narrow what a worker may claim; a service or anon key has no such scope");
    }
    if args.name.trim().is_empty() {
        bail!("a key needs a name, to be recognised by");
    }
    let client = app.target.client().await?;
    for queue in &args.queues {
        gleaner::registry::find(&client, queue).await?;
    }
    if let Some(valid) = &args.valid
        && seconds(&client, valid).await? <= 0.0
    {
        bail!("--valid must be longer than nothing");
    }
    let scope = |list: &'_ [String]| -> Option<Vec<String>> { (!list.is_empty()).then(|| list.to_vec()) };
    let (queues, kinds) = (scope(&args.queues), scope(&args.kinds));
    let kind = match args.role {
        Role::Worker => Kind::Worker,
        Role::Service => Kind::Service,
        Role::Anon => Kind::Anon,
    };
    let new = New { name: &args.name, kind, queues: queues.as_deref(), kinds: kinds.as_deref(), valid: args.valid.as_deref() };
    let Some((id, key)) = api_keys::add(&client, &new).await? else {
        bail!("there is a key {:?} already\n  `gleaner keys revoke` ends it and frees the name", args.name);
    };
    app.out.json(&json!({"id": id, "name": args.name, "role": kind.name(), "queues": queues, "kinds": kinds, "key": key}));
    if !app.out.quiet {
        app.out.note(format!("Key {} ({}); it is shown once:", paint(BOLD, &args.name), kind.name()));
    }
    app.out.listing(key);
    Ok(ExitCode::SUCCESS)
}
