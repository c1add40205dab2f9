//! `gleaner serve`.

pub(crate) mod options;

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner_server::Server;
use serde_json::json;

use self::options::{FirstPort, Options};
use crate::Desk;
use crate::output::{self, BOLD, DIM, WARN, paint};
use crate::serving::{Record, Serving};
use crate::signals::Signals;

/// Let webhooks in: verify, understand and store them, and only then say so.
///
/// Stays in the foreground until Ctrl-C or SIGTERM; then it accepts nothing more and finishes what is in flight. Any number of
/// servers may share one database. TLS is the proxy's in front of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner serve                                          for DATABASE_URL, on 127.0.0.1:54321 or the port this home has kept
  PUBLIC_BASE_URL=https://hooks.example.com gleaner serve --listen 0.0.0.0:8080 --trusted-proxies 10.0.0.0/8
  DATABASE_URL=postgresql://… gleaner serve --listen 127.0.0.1:0       on any free port
  gleaner status --wait && echo it answers")]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    output::end_orderly();
    let url = desk.place.url().await?;
    let home = desk.place.home()?;
    let pool = args.options.pool(&url)?;
    // Told here and now, where somebody looks, and not to the first sender.
    drop(gleaner::connect(&url).await?);
    if !gleaner_server::health::is_migrated(&pool).await? {
        bail!(
            "the database is not migrated to this version, or lacks the system crm, which the server needs\n  Run `gleaner migrate --systems crm` first"
        );
    }
    std::fs::create_dir_all(home.path())?;
    if let Some(first) = Serving::find(home.path()).filter(|_| !args.options.names_address()) {
        bail!(
            "a server runs in {} already, pid {}: {}\n  Stop it first; or run another one beside it with --listen ADDRESS:PORT",
            home.path().display(),
            first.pid,
            first.url()
        );
    }
    let server = args.options.start(home.path(), &url, pool, FirstPort::Usual).await?;
    let record = Record::write(home.path(), server.local_addr(), args.options.public_base())?;
    tell(desk, &server, &args.options);
    if let Some(first) = Serving::find(home.path()).filter(|_| record.is_none()) {
        let home = home.path().display();
        desk.out.note(format!("A server runs in {home} already, pid {}: {}. Commands go on using that one.", first.pid, first.url()));
    }
    signals.any().await;
    desk.out.note("Finishing what is in flight …");
    drop(record);
    server.stop().await;
    Ok(ExitCode::SUCCESS)
}

fn tell(desk: &Desk, server: &Server, options: &Options) {
    let url = format!("http://{}", server.local_addr());
    let public = options.public_base().unwrap_or(&url);
    desk.out.json(&json!({"running": true, "pid": std::process::id(), "API_URL": url, "PUBLIC_BASE_URL": public}));
    desk.out.line(format!("{} on {}", paint(BOLD, "Listening"), server.local_addr()));
    desk.out.line(format!("  webhooks  {public}{}?key=…", gleaner_intake::channels::WEBHOOK_PATH));
    desk.out.line(format!("  health    {url}/health, {url}/ready"));
    if options.public_base().is_none() {
        let warning = "PUBLIC_BASE_URL is not set: senders that sign their URL (Twilio) are refused unless they use this address.";
        desk.out.note(paint(WARN, warning));
    }
    desk.out.line(paint(DIM, "Ctrl-C stops; `gleaner channels` says who may send."));
}
