//! `gleaner up --detach`: the same command once more, as a process in the background.
//!
//! The child keeps our standard error, so that the error of a failed start is seen in the terminal. When it is ready it turns
//! to its log and closes the pipe it had as standard output: that is the signal.

use std::fs::OpenOptions;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner_postgres::{Home, Status, status};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::{Args, administrator, agent, next};
use crate::App;
use crate::output::{BOLD, paint};
use crate::serving::Serving;

pub(super) async fn start(app: &App, args: &Args) -> Result<ExitCode> {
    let home = app.target.home()?;
    if status(&home).await?.parent_pid.is_some() {
        return tell(app, &wait_until_ready(&home).await?, "is running already").await;
    }
    let mut command = Command::new(std::env::current_exe().context("find our own program")?);
    command.args(["up", "--in-background", "--quiet"]).env("GLEANER_HOME", home.path()).env_remove("DATABASE_URL");
    args.server.hand_over(&mut command);
    if let Some(port) = args.port {
        command.args(["--port", &port.to_string()]);
    }
    if args.no_agent {
        command.arg("--no-agent");
    }
    if !args.systems.is_empty() {
        command.args(["--systems", &args.systems.join(",")]);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("start in the background")?;
    let mut until_ready = child.stdout.take().context("watch the background process")?;
    let mut nothing = Vec::new();
    until_ready.read_to_end(&mut nothing).await.context("watch the background process")?;
    let now = wait_until_ready(&home).await?;
    if !now.is_ready() {
        // It has printed the reason.
        child.wait().await.context("wait for the background process")?;
        return Ok(ExitCode::FAILURE);
    }
    tell(app, &now, "is ready, in the background").await
}

/// Waits while another process is starting: PostgreSQL first, then the schema, and then the server, however long that takes.
async fn wait_until_ready(home: &Home) -> Result<Status> {
    loop {
        let now = status(home).await?;
        if now.parent_pid.is_none() || (now.is_ready() && Serving::find(home.path()).is_some()) {
            return Ok(now);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn tell(app: &App, now: &Status, how: &str) -> Result<ExitCode> {
    let Some(server) = &now.server else {
        anyhow::bail!("it stopped again; `gleaner logs` shows why");
    };
    let api = Serving::find(&now.home).map(|serving| serving.url());
    // Written before the server's own note, so that it is there if there is an agent.
    let agent = agent::url(&Home::at(&now.home)?, now.parent_pid);
    let admin = administrator::make(&server.url).await?;
    app.out.json(&json!({
        "administrator": administrator::as_json(admin.as_ref()),
        "running": true, "pid": now.parent_pid, "DB_URL": server.url, "DB_TCP_URL": server.tcp_url.as_deref().map(super::without_password), "API_URL": api, "AGENT_URL": agent, "home": now.home,
        "log": now.log, "version": server.version,
    }));
    let name = paint(BOLD, format!("PostgreSQL {}", server.version.as_deref().unwrap_or_default()));
    app.out.line(format!("{name} {how}, pid {}", now.parent_pid.unwrap_or(server.pid)));
    app.out.line(format!("  url     {}", server.url));
    if let Some(url) = &server.tcp_url {
        app.out.line(super::tcp_line(url));
    }
    if let Some(api) = &api {
        app.out.line(format!("  api     {api}"));
    }
    if let Some(agent) = &agent {
        app.out.line(format!("  agent   {agent}"));
    }
    app.out.line(format!("  home    {}", now.home.display()));
    administrator::tell(app, admin.as_ref());
    app.out.line(next::hints(app, "here"));
    app.out.line(next::LOOK);
    app.out.line("`gleaner down` stops it; the data stays.");
    Ok(ExitCode::SUCCESS)
}

/// In the child, once it is ready: a session of its own, the root as its folder, output to the log.
pub(super) fn let_go(home: &Home) -> Result<()> {
    let path = home.path().join("log/gleaner.log");
    let log = OpenOptions::new().create(true).append(true).open(&path).with_context(|| format!("open {}", path.display()))?;
    // Not a group leader, since a shell started our parent; so this cannot fail.
    nix::unistd::setsid().context("leave the terminal")?;
    std::env::set_current_dir("/").context("leave the current folder")?;
    nix::unistd::dup2_stderr(&log).context("turn to the log")?;
    nix::unistd::dup2_stdout(&log).context("turn to the log")?;
    Ok(())
}
