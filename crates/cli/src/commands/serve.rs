//! `gleaner serve`.

pub(crate) mod options;

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner_server::Server;
use serde_json::json;

use self::options::{FirstPort, Options};
use crate::App;
use crate::output::{self, BOLD, DIM, WARN, paint};
use crate::serving::{Record, Serving};
use crate::signals::Signals;

/// Serve the API and the web interface, and receive webhooks.
///
/// A webhook is verified, parsed and stored before it is acknowledged. Stays in the foreground until Ctrl-C or SIGTERM; then it
/// accepts no more connections and answers the requests it has received. Any number of servers may share one database. Put a
/// proxy in front of it for TLS.
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

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    output::end_orderly();
    let url = app.target.url().await?;
    let home = app.target.home()?;
    let pool = args.options.pool(&url)?;
    // Checked now, so that the error is seen where the server is started and not by the first sender.
    if !gleaner_server::health::is_migrated(&url).await? {
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
    tell(app, &server, &args.options);
    if let Some(first) = Serving::find(home.path()).filter(|_| record.is_none()) {
        let home = home.path().display();
        app.out.note(format!("A server runs in {home} already, pid {}: {}. Commands go on using that one.", first.pid, first.url()));
    }
    signals.any().await;
    app.out.note("Finishing what is in flight …");
    drop(record);
    server.stop().await;
    Ok(ExitCode::SUCCESS)
}

fn tell(app: &App, server: &Server, options: &Options) {
    let url = format!("http://{}", server.local_addr());
    let public = options.public_base().unwrap_or(&url);
    app.out.json(&json!({"running": true, "pid": std::process::id(), "API_URL": url, "PUBLIC_BASE_URL": public}));
    app.out.line(format!("{} on {}", paint(BOLD, "Listening"), server.local_addr()));
    app.out.line(format!("  webhooks  {public}{}?key=…", gleaner_intake::channels::WEBHOOK_PATH));
    app.out.line(format!("  health    {url}/health, {url}/ready"));
    if options.public_base().is_none() {
        let warning = "PUBLIC_BASE_URL is not set: senders that sign their URL (Twilio) are refused unless they use this address.";
        app.out.note(paint(WARN, warning));
    }
    app.out.line(paint(DIM, "Ctrl-C stops; `gleaner channels` lists the webhooks."));
}
