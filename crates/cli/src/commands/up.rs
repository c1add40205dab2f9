//! `gleaner up`: a private PostgreSQL, migrated, kept running, served and worked; or a given database, migrated.

mod administrator;
mod agent;
mod background;
mod next;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use gleaner_postgres::{Cluster, Options, status};
use serde_json::json;

use super::serve::options::{FirstPort, Options as ServerOptions};
use crate::Desk;
use crate::output::{self, BOLD, DIM, paint};
use crate::serving::{Record, Serving, keep_port};
use crate::signals::Signals;
use crate::words::{count, span};

/// Start the private PostgreSQL, bring its schema up to date, keep it running, serve, and work.
///
/// Stays in the foreground until Ctrl-C or SIGTERM; then PostgreSQL stops too, and the data stays. The first start takes port 54321
/// of 127.0.0.1 for the server, or the next one that is free; later starts take the same one. One agent works what comes in, as
/// `gleaner agent` would with the agent.toml of this home; without one it reads text offline, without a model. With DATABASE_URL
/// nothing is started: that database is migrated, and the command ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner up                                run here, Ctrl-C stops
  gleaner up --detach                       run in the background, `gleaner down` stops
  GLEANER_HOME=~/second gleaner up          another one beside it, with data of its own
  gleaner up --no-agent                     work nothing; agents elsewhere do
  gleaner up --systems crm                  the first time: without the systems dumps, runs and followups
  gleaner up --port 5433                    also listen on 127.0.0.1:5433, with a password
  DATABASE_URL=postgresql://… gleaner up    migrate that database instead")]
pub(crate) struct Args {
    /// Run in the background and return when ready
    #[arg(short, long)]
    detach: bool,
    /// Also listen on this TCP port of 127.0.0.1, with a password
    #[arg(long)]
    port: Option<u16>,
    /// Run no agent
    #[arg(long)]
    no_agent: bool,
    /// Bring these systems, beside those the database has. The server needs crm, which comes along
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    systems: Vec<String>,
    /// This is the process in the background
    #[arg(long, hide = true)]
    in_background: bool,
    #[command(flatten)]
    server: ServerOptions,
}

pub(crate) async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    if let Some(url) = desk.place.given() {
        return migrate_given(desk, url, &args.systems).await;
    }
    if args.detach {
        return background::start(desk, &args).await;
    }
    let home = desk.place.home()?;
    let now = status(&home).await?;
    if let Some(pid) = now.parent_pid.filter(|_| !args.in_background) {
        let at = now.server.map_or_else(|| "it is still starting".to_owned(), |server| server.url);
        bail!(
            "already running in {}, pid {pid}: {at}\n  `gleaner down` stops it; GLEANER_HOME=DIR gleaner up runs another one",
            home.path().display()
        );
    }
    if let Some(serving) = Serving::find(home.path()).filter(|_| now.parent_pid.is_none()) {
        bail!("{}", serves_already(home.path(), &serving));
    }
    let mut signals = Signals::listen()?;
    output::end_orderly();
    let began = Instant::now();
    let first = if now.initialised { "" } else { " (the first time takes a few seconds)" };
    desk.out.note(paint(DIM, format!("Starting PostgreSQL in {}{first} …", home.path().display())));
    let mut options = Options::new(home);
    options.port = args.port;
    let systems = served(desk, &args.systems);
    let starting = async {
        let cluster = Cluster::start(options).await?;
        let applied = gleaner::migrate::migrate_systems(cluster.url(), &systems, &|step| desk.out.note(paint(DIM, step))).await?;
        let server = args.server.start(cluster.home().path(), cluster.url(), args.server.pool(cluster.url())?, FirstPort::NextFree).await?;
        keep_port(cluster.home().path(), server.local_addr().port())?;
        let agent = if args.no_agent {
            None
        } else {
            let address = format!("http://{}", server.local_addr());
            Some(agent::start(desk, cluster.home(), cluster.url(), &address).await?)
        };
        anyhow::Ok((cluster, applied.len(), server, agent))
    };
    let (cluster, applied, server, mut agent) = tokio::select! {
        started = starting => match started {
            // Somebody was quicker; whoever started us waits for them instead.
            Err(error) if args.in_background && is_running(&error) => return Ok(ExitCode::SUCCESS),
            started => started?,
        },
        // Dropping a cluster that is starting stops it.
        () = signals.any() => return Ok(ExitCode::from(130)),
    };
    let Some(record) = Record::write(cluster.home().path(), server.local_addr(), args.server.public_base())? else {
        bail!("another server was started in {} at the same time\n  Stop it, then run `gleaner up` again", cluster.home().path().display());
    };
    if args.in_background {
        background::let_go(cluster.home())?;
    }
    let admin = if args.in_background {
        // Nobody would read it here: the one who started us asks.
        None
    } else {
        administrator::make(cluster.url()).await?
    };
    tell(desk, &cluster, &record.serving, applied, began, admin.as_ref(), agent.as_ref().and_then(|agent| agent.url())).await?;
    tokio::select! {
        () = signals.any() => {}
        () = agent::ended(desk, &mut agent) => {}
        () = cluster.exited() => bail!("PostgreSQL ended by itself; `gleaner logs` shows why, `gleaner up` starts it again"),
    }
    desk.out.note("Stopping …");
    agent::stop(desk, agent, &mut signals).await;
    drop(record);
    server.stop().await;
    let home = cluster.home().path().display().to_string();
    cluster.stop().await?;
    desk.out.note(format!("Stopped. The data stays in {home}."));
    Ok(ExitCode::SUCCESS)
}

/// The server speaks of channels and contacts: with any choice of systems crm comes along, and that is told.
fn served(desk: &Desk, asked: &[String]) -> Vec<String> {
    let mut systems = asked.to_vec();
    if !systems.is_empty() && !systems.iter().any(|system| system == "crm") {
        desk.out.note("The system crm comes along: the server needs its tables.");
        systems.push("crm".to_owned());
    }
    systems
}

fn serves_already(home: &Path, serving: &Serving) -> String {
    format!(
        "a server runs in {} already, pid {}: {}\n  Stop it first (Ctrl-C, or kill {}); or GLEANER_HOME=DIR gleaner up runs another one",
        home.display(),
        serving.pid,
        serving.url(),
        serving.pid
    )
}

fn is_running(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(gleaner_postgres::Error::AlreadyRunning { .. }))
}

async fn tell(
    desk: &Desk,
    cluster: &Cluster,
    serving: &Serving,
    applied: usize,
    began: Instant,
    admin: Option<&gleaner_supabase::auth::people::Credentials>,
    agent: Option<&str>,
) -> Result<()> {
    let queues = next::queues(cluster.url()).await?;
    desk.out.json(&json!({
        "administrator": administrator::as_json(admin),
        "running": true, "pid": std::process::id(), "DB_URL": cluster.url(), "DB_TCP_URL": cluster.tcp_url(), "API_URL": serving.url(), "AGENT_URL": agent,
        "home": cluster.home().path(), "log": cluster.home().log(), "version": cluster.version(), "applied": applied, "queues": queues,
    }));
    let how = if cluster.was_adopted() { "was still running and is ours again" } else { "is ready" };
    let took = span(began.elapsed().as_secs_f64());
    desk.out.line(format!("{} {how}, after {took}", paint(BOLD, format!("PostgreSQL {}", cluster.version()))));
    desk.out.line(format!("  url     {}", cluster.url()));
    if let Some(url) = cluster.tcp_url() {
        desk.out.line(format!("          {url}"));
    }
    desk.out.line(format!("  api     {}", serving.url()));
    if let Some(url) = agent {
        desk.out.line(format!("  agent   {url}"));
    }
    desk.out.line(format!("  home    {}", cluster.home().path().display()));
    desk.out.line(format!("  schema  {}", next::schema(applied)));
    desk.out.line(format!("  queues  {}", queues.join(", ")));
    administrator::tell(desk, admin);
    desk.out.line(next::hints(desk, "in another terminal"));
    desk.out.line(next::LOOK);
    desk.out.line(paint(DIM, "Ctrl-C stops PostgreSQL; the data stays."));
    Ok(())
}

async fn migrate_given(desk: &Desk, url: &str, systems: &[String]) -> Result<ExitCode> {
    let applied = gleaner::migrate::migrate_systems(url, systems, &|step| desk.out.note(paint(DIM, step))).await?;
    let queues = next::queues(url).await?;
    let admin = administrator::make(url).await?;
    desk.out.json(&json!({"administrator": administrator::as_json(admin.as_ref()), "running": true, "DB_URL": url, "applied": applied.len(), "queues": queues}));
    desk.out.line(format!(
        "DATABASE_URL is set: that database is used, and no private PostgreSQL is started. {}.",
        count(applied.len() as i64, "step") + " applied"
    ));
    desk.out.line(format!("  queues  {}", queues.join(", ")));
    administrator::tell(desk, admin.as_ref());
    desk.out.line(next::hints(desk, "with the same DATABASE_URL"));
    Ok(ExitCode::SUCCESS)
}
