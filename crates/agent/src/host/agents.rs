//! Serves each app with an agent of its own: the same pipelines and settings as this process, at the place that the app named.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use gleaner::transport::Endpoint as _;
use uuid::Uuid;

use super::asked::Place;
use super::{App, Condition, Kind, Model, Problem, Serve, Trouble, locked};
use crate::agent::Agent;
use crate::config::{Config, EndpointAt, Until};
use crate::pipeline::{ModelKind, Models};
use crate::wire::{Settings, Wire, sessions};

/// The tables that ship with the engine: the queue of each, the filter that selects all its waiting rows, and the column of
/// kinds.
const TABLES: [(&str, &str, &str, Option<&str>); 4] = [
    ("activities", "activities", "processing_status=eq.raw", Some("type")),
    ("agent_processing_queue", "dumps", "processing_state=eq.pending", None),
    ("execution_jobs", "runs", "status=eq.queued", None),
    ("scheduled_actions", "followups", "status=eq.pending", Some("action_type")),
];

/// One agent per app.
#[derive(Debug)]
pub struct Agents {
    config: Config,
    running: Mutex<HashMap<String, Agent>>,
}

impl Agents {
    /// Agents with the same configuration as this one.
    pub fn like(config: &Config) -> Self {
        Self { config: config.clone(), running: Mutex::default() }
    }

    fn config_for(&self, place: &Place, settings: Settings) -> Result<Config, Trouble> {
        let (queues, kinds) = wanted(place)?;
        let mut config = self.config.clone();
        config.worker = Uuid::now_v7().to_string();
        config.endpoint = EndpointAt::Wire(settings);
        (config.queues, config.kinds) = (Some(queues), kinds);
        // The signed-in user is the owner there, and the status page is ours.
        (config.server, config.owner, config.status, config.until) = (None, None, None, Until::Stopped);
        Ok(config)
    }
}

#[async_trait]
impl Serve for Agents {
    async fn serve(&self, app: App) -> Result<(), Trouble> {
        self.stop(&app.name).await;
        let url = &app.place.url;
        let session = sessions::find(&self.config.home, Some(url))?
            .ok_or_else(|| format!("not signed in to {url}: run `gleaner agent login --url {url} --anon-key …` and try again"))?;
        let settings = Settings { url: url.clone(), anon_key: app.place.anon_key.clone(), service_key: None, session: Some(session.path) };
        let config = self.config_for(&app.place, settings.clone())?;
        // Checked once here, so that the page shows at once what the agent would only log.
        let wire = Wire::connect(settings)?;
        wire.who().await?;
        let there = wire.queues().await?;
        if let Some(missing) = config.queues.iter().flatten().find(|queue| !there.contains(queue)) {
            return Err(format!("{url} has no queue {missing}; `gleaner migrate` makes those of the engine").into());
        }
        let agent = Agent::start(config).await?;
        locked(&self.running).insert(app.name, agent);
        Ok(())
    }

    async fn stop(&self, name: &str) {
        let running = locked(&self.running).remove(name);
        if let Some(agent) = running {
            // Running items may finish, which takes time. No new items are claimed from here on.
            agent.begin_to_stop();
            tokio::spawn(agent.stop());
        }
    }

    async fn end(&self) {
        let all = std::mem::take(&mut *locked(&self.running));
        futures_util::future::join_all(all.into_values().map(Agent::stop)).await;
    }

    fn condition(&self, name: &str) -> Condition {
        let running = locked(&self.running);
        let Some(agent) = running.get(name) else { return Condition::default() };
        let trouble = agent.trouble();
        Condition {
            ended: trouble.as_ref().is_some_and(|trouble| trouble.ended),
            trouble: trouble.map(|trouble| Problem { problem: trouble.message, since: trouble.since }),
            last_error: agent.control().stats().errors.pop(),
        }
    }
}

/// The queues of the tables that the user consented to, and the kinds. If we cannot respect a filter, the app is not served at
/// all.
fn wanted(place: &Place) -> Result<(Vec<String>, Option<Vec<String>>), Trouble> {
    let (mut queues, mut kinds) = (Vec::new(), None);
    for table in &place.tables {
        let plain = table.strip_prefix("public.").unwrap_or(table);
        let known = TABLES.iter().find(|(name, ..)| *name == plain);
        let (_, queue, ready, kind) = known.ok_or_else(|| {
            let names: Vec<_> = TABLES.iter().map(|(name, ..)| *name).collect();
            format!("the table {table} is none that apps are served from; there are: {}", names.join(", "))
        })?;
        queues.push((*queue).to_owned());
        match place.filters.get(table).map(String::as_str) {
            None => {}
            Some(filter) if filter == *ready => {}
            Some(filter) => {
                let named = kind.and_then(|column| kinds_in(filter, column)).filter(|_| place.tables.len() == 1);
                kinds = Some(named.ok_or_else(|| format!("the filter {filter} cannot be kept to; {ready} can"))?);
            }
        }
    }
    Ok((queues, kinds))
}

/// The values of `column=eq.a` and `column=in.(a,b)`.
fn kinds_in(filter: &str, column: &str) -> Option<Vec<String>> {
    let test = filter.strip_prefix(column)?.strip_prefix('=')?;
    if let Some(one) = test.strip_prefix("eq.") {
        return Some(vec![one.to_owned()]);
    }
    let many = test.strip_prefix("in.(")?.strip_suffix(')')?;
    Some(many.split(',').map(|kind| kind.trim().to_owned()).collect())
}

impl Model {
    /// The models of a pipeline file that can be used. The others lack a URL or a key, and report that where they are used.
    pub fn of(models: &Models) -> Vec<Self> {
        let shared = |model: &crate::pipeline::Model| {
            Some(Self {
                name: model.name.clone(),
                kind: match model.kind {
                    ModelKind::Chat => Kind::Chat,
                    ModelKind::Transcription => Kind::Transcription,
                    ModelKind::Embedding => Kind::Embedding,
                },
                base_url: model.base_url.clone()?,
                key: model.key().ok()?,
                model: model.model.clone(),
                timeout: model.timeout,
            })
        };
        models.iter().filter_map(shared).collect()
    }
}

#[cfg(test)]
mod tests;
