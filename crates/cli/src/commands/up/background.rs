//! `gleaner up --detach`: the same command once more, in a life of its own.
//!
//! The child keeps our standard error, so that a failed start is told where the person looks, until it is ready. Then it turns
//! to its log and lets go of the pipe it had as standard output: that is the signal.

use std::fs::OpenOptions;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use gleaner_postgres::{Home, Status, status};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::{Args, administrator, agent, next};
use crate::Desk;
use crate::output::{BOLD, paint};
use crate::serving::Serving;

pub(super) async fn start(desk: &Desk, args: &Args) -> Result<ExitCode> {
    let home = desk.place.home()?;
    if status(&home).await?.parent_pid.is_some() {
        return tell(desk, &wait_until_ready(&home).await?, "is running already").await;
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
        // It has told why.
        child.wait().await.context("wait for the background process")?;
        return Ok(ExitCode::FAILURE);
    }
    tell(desk, &now, "is ready, in the background").await
}

/// Waits while somebody is starting: PostgreSQL first, and then the server. One that was started by an older version has no server.
async fn wait_until_ready(home: &Home) -> Result<Status> {
    let mut patience = None;
    loop {
        let now = status(home).await?;
        if now.is_ready() && Serving::find(home.path()).is_none() && now.parent_pid.is_some() {
            let until = *patience.get_or_insert_with(|| Instant::now() + Duration::from_secs(20));
            if Instant::now() > until {
                return Ok(now);
            }
        } else if now.is_ready() || now.parent_pid.is_none() {
            return Ok(now);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn tell(desk: &Desk, now: &Status, how: &str) -> Result<ExitCode> {
    let Some(server) = &now.server else {
        anyhow::bail!("it stopped again; `gleaner logs` shows why");
    };
    let api = Serving::find(&now.home).map(|serving| serving.url());
    // Written before the server's own note, so that it is there if there is an agent.
    let agent = agent::url(&Home::at(&now.home)?, now.parent_pid);
    let admin = administrator::make(&server.url).await?;
    desk.out.json(&json!({
        "administrator": administrator::as_json(admin.as_ref()),
        "running": true, "pid": now.parent_pid, "DB_URL": server.url, "DB_TCP_URL": server.tcp_url, "API_URL": api, "AGENT_URL": agent, "home": now.home,
        "log": now.log, "version": server.version,
    }));
    let name = paint(BOLD, format!("PostgreSQL {}", server.version.as_deref().unwrap_or_default()));
    desk.out.line(format!("{name} {how}, pid {}", now.parent_pid.unwrap_or(server.pid)));
    desk.out.line(format!("  url     {}", server.url));
    if let Some(url) = &server.tcp_url {
        desk.out.line(format!("          {url}"));
    }
    if let Some(api) = &api {
        desk.out.line(format!("  api     {api}"));
    }
    if let Some(agent) = &agent {
        desk.out.line(format!("  agent   {agent}"));
    }
    desk.out.line(format!("  home    {}", now.home.display()));
    administrator::tell(desk, admin.as_ref());
    desk.out.line(next::hints(desk, "here"));
    desk.out.line(next::LOOK);
    desk.out.line("`gleaner down` stops it; the data stays.");
    Ok(ExitCode::SUCCESS)
}

/// In the child, once it is ready: a session of its own, out of anybody's folder, speaking to the log.
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
