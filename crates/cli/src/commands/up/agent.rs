//! The agent of `gleaner up`: one, in the same process, on the database it started.

use anyhow::Result;
use gleaner_agent::agent::Agent;
use gleaner_agent::status::note::Note;
use gleaner_agent::wire::Settings;
use gleaner_postgres::Home;

use super::super::{agent, status};
use crate::App;
use crate::output::{DIM, WARN, paint};
use crate::signals::Signals;

/// Starts it with the settings of agent.toml and the environment, whatever endpoint those name. Recordings come through our own server.
pub(super) async fn start(app: &App, home: &Home, database: &str, server: &str) -> Result<Agent> {
    let mut config = agent::at(home.path(), database)?;
    config.server = status::keys::project_keys(app).map(|keys| {
        let key = |name: &str| keys.iter().find(|(known, _)| *known == name).map(|(_, key)| key.clone());
        Settings {
            url: server.to_owned(),
            anon_key: key("ANON_KEY").unwrap_or_default(),
            service_key: key("SERVICE_ROLE_KEY"),
            session: None,
        }
    });
    let agent = Agent::start_hosting(config).await?;
    if !agent.queues().iter().any(|queue| queue == gleaner_systems::runs::QUEUE) {
        app.out.note(paint(DIM, "Runs are not replayed here. For runs: apt-get install chromium chromium-driver, then start again."));
    }
    Ok(agent)
}

/// Where the page of the agent is that this process runs.
pub(super) fn url(home: &Home, pid: Option<u32>) -> Option<String> {
    Note::all(home.path()).into_iter().find(|note| Some(note.pid) == pid).map(|note| note.url)
}

/// Prints a note when it ends by itself; the rest goes on without it. Never returns.
pub(super) async fn ended(app: &App, running: &mut Option<Agent>) {
    if let Some(agent) = running
        && let Err(error) = agent.wait().await
    {
        app.out.note(format!(
            "{} {error}\n  `gleaner up` goes on without it; `gleaner agent` starts another.",
            paint(WARN, "The agent ended:")
        ));
        *running = None;
    }
    std::future::pending().await
}

/// Lets it finish what it has, within its grace; another signal gives everything back at once.
pub(super) async fn stop(app: &App, running: Option<Agent>, signals: &mut Signals) {
    let Some(mut agent) = running else { return };
    agent.begin_to_stop();
    let stopped = tokio::select! {
        stopped = agent.wait() => Some(stopped),
        () = signals.any() => None,
    };
    match stopped {
        Some(Err(error)) => app.out.note(format!("{} {error}", paint(WARN, "The agent ended:"))),
        Some(Ok(_)) => {}
        None => drop(agent.release_now().await),
    }
}
