//! `gleaner up`: a private PostgreSQL, migrated, kept running, served and worked; or a given database, migrated.

mod administrator;
mod agent;
mod background;
mod demo;
mod next;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use gleaner_postgres::{Cluster, Options, status};
use serde_json::json;

use super::serve::options::{FirstPort, Options as ServerOptions};
use crate::App;
use crate::output::{self, BOLD, DIM, paint};
use crate::serving::{Record, Serving, keep_port};
use crate::signals::Signals;
use crate::words::{count, span};

/// Start a private PostgreSQL, migrate it, and run the server and an agent.
///
/// Stays in the foreground until Ctrl-C or SIGTERM; then PostgreSQL stops too, and the data stays. The first start takes port 54321
/// of 127.0.0.1 for the server, or the next one that is free; later starts take the same one. One agent processes what
/// arrives, as `gleaner agent` would with the agent.toml of this home; without that file it reads text offline, without a model. With DATABASE_URL
/// nothing is started: that database is migrated, and the command ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner up                                run here, Ctrl-C stops
  gleaner up --detach                       run in the background, `gleaner down` stops
  GLEANER_HOME=~/second gleaner up          another one beside it, with data of its own
  gleaner up --no-agent                     run no agent; agents elsewhere do the work
  GLEANER_HOME=~/demo gleaner up --demo     a fresh one with sample traffic, to look at
  gleaner up --systems crm                  the first time: only this system
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
    /// Fill a fresh install with sample data, and send signed sample messages to its webhook endpoint while it runs
    #[arg(long, conflicts_with_all = ["detach", "systems"])]
    demo: bool,
    /// Install these systems, in addition to those the database has. The server needs crm, which is always added
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    systems: Vec<String>,
    /// This is the process in the background
    #[arg(long, hide = true)]
    in_background: bool,
    #[command(flatten)]
    server: ServerOptions,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    if let Some(url) = app.target.given() {
        return migrate_given(app, url, &args.systems).await;
    }
    if args.detach {
        return background::start(app, &args).await;
    }
    let home = app.target.home()?;
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
    app.out.note(paint(DIM, format!("Starting PostgreSQL in {}{first} …", home.path().display())));
    let mut options = Options::new(home);
    options.port = args.port;
    let systems = served(app, &args.systems);
    let starting = async {
        let cluster = Cluster::start(options).await?;
        let applied = gleaner::migrate::migrate_systems(cluster.url(), &systems, &|step| app.out.note(paint(DIM, step))).await?;
        let server = args.server.start(cluster.home().path(), cluster.url(), args.server.pool(cluster.url())?, FirstPort::NextFree).await?;
        keep_port(cluster.home().path(), server.local_addr().port())?;
        let agent = if args.no_agent {
            None
        } else {
            let address = format!("http://{}", server.local_addr());
            Some(agent::start(app, cluster.home(), cluster.url(), &address).await?)
        };
        anyhow::Ok((cluster, applied.len(), server, agent))
    };
    let (mut cluster, applied, server, mut agent) = tokio::select! {
        started = starting => match started {
            // Another `up` was quicker. The process that started this one waits for that one instead.
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
        // The process that started this one prints the credentials.
        None
    } else {
        administrator::make(cluster.url()).await?
    };
    let demo = if args.demo { Some(demo::prepare(cluster.home().path(), cluster.url(), &record.serving.url()).await?) } else { None };
    tell(app, &cluster, &record.serving, applied, began, admin.as_ref(), agent.as_ref().and_then(|agent| agent.url())).await?;
    let demo = demo::run(app, demo);
    tokio::pin!(demo);
    loop {
        tokio::select! {
            () = &mut demo => {}
            () = signals.any() => break,
            () = agent::ended(app, &mut agent) => {}
            () = cluster.exited() => bail!("PostgreSQL ended by itself; `gleaner logs` shows why, `gleaner up` starts it again"),
            () = cluster.upgraded() => {
                app.out.note("PostgreSQL was upgraded on disk. Restarting it …");
                cluster.restart().await?;
                app.out.note(format!("PostgreSQL {} is ready. The server and the agent connect again by themselves.", cluster.version()));
            }
        }
    }
    app.out.note("Stopping …");
    agent::stop(app, agent, &mut signals).await;
    drop(record);
    server.stop().await;
    let home = cluster.home().path().display().to_string();
    cluster.stop().await?;
    app.out.note(format!("Stopped. The data stays in {home}."));
    Ok(ExitCode::SUCCESS)
}

/// The server needs the tables of crm: it is added to any choice of systems, with a note.
fn served(app: &App, asked: &[String]) -> Vec<String> {
    let mut systems = asked.to_vec();
    if !systems.is_empty() && !systems.iter().any(|system| system == "crm") {
        app.out.note("The system crm is added: the server needs its tables.");
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
    app: &App,
    cluster: &Cluster,
    serving: &Serving,
    applied: usize,
    began: Instant,
    admin: Option<&gleaner_supabase::auth::people::Credentials>,
    agent: Option<&str>,
) -> Result<()> {
    let queues = next::queues(cluster.url()).await?;
    app.out.json(&json!({
        "administrator": administrator::as_json(admin),
        "running": true, "pid": std::process::id(), "DB_URL": cluster.url(), "DB_TCP_URL": cluster.tcp_url().map(without_password), "API_URL": serving.url(), "AGENT_URL": agent,
        "home": cluster.home().path(), "log": cluster.home().log(), "version": cluster.version(), "applied": applied, "queues": queues,
    }));
    let how = if cluster.was_adopted() { "was still running and was taken over" } else { "is ready" };
    let took = span(began.elapsed().as_secs_f64());
    app.out.line(format!("{} {how}, after {took}", paint(BOLD, format!("PostgreSQL {}", cluster.version()))));
    app.out.line(format!("  url     {}", cluster.url()));
    if let Some(url) = cluster.tcp_url() {
        app.out.line(tcp_line(url));
    }
    app.out.line(format!("  api     {}", serving.url()));
    app.out.line(format!("  web     {}/", serving.url()));
    if let Some(url) = agent {
        app.out.line(format!("  agent   {url}"));
    }
    app.out.line(format!("  home    {}", cluster.home().path().display()));
    app.out.line(format!("  schema  {}", next::schema(applied)));
    app.out.line(format!("  queues  {}", queues.join(", ")));
    administrator::tell(app, admin);
    app.out.line(next::hints(app, "in another terminal"));
    app.out.line(next::LOOK);
    app.out.line(paint(DIM, "Ctrl-C stops PostgreSQL; the data stays."));
    Ok(())
}

fn tcp_line(url: &str) -> String {
    format!("          {} (`gleaner status -o env` prints it with its password)", without_password(url))
}

/// What is printed at the start is kept in terminals and logs.
fn without_password(url: &str) -> String {
    let Some((before, host)) = url.split_once('@') else { return url.to_owned() };
    let (scheme, user) = before.split_once("://").unwrap_or(("postgresql", before));
    format!("{scheme}://{}@{host}", user.split(':').next().unwrap_or_default())
}

async fn migrate_given(app: &App, url: &str, systems: &[String]) -> Result<ExitCode> {
    let applied = gleaner::migrate::migrate_systems(url, systems, &|step| app.out.note(paint(DIM, step))).await?;
    let queues = next::queues(url).await?;
    let admin = administrator::make(url).await?;
    app.out.json(&json!({"administrator": administrator::as_json(admin.as_ref()), "running": true, "DB_URL": url, "applied": applied.len(), "queues": queues}));
    app.out.line(format!(
        "DATABASE_URL is set: that database is used, and no private PostgreSQL is started. {}.",
        count(applied.len() as i64, "step") + " applied"
    ));
    app.out.line(format!("  queues  {}", queues.join(", ")));
    administrator::tell(app, admin.as_ref());
    app.out.line(next::hints(app, "with the same DATABASE_URL"));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_address_is_printed_without_its_password() {
        assert_eq!(
            super::without_password("postgresql://gleaner:se:cret@127.0.0.1:5433/gleaner"),
            "postgresql://gleaner@127.0.0.1:5433/gleaner"
        );
        assert!(!super::tcp_line("postgresql://gleaner:secret@127.0.0.1:5433/gleaner").contains("secret"));
    }
}
