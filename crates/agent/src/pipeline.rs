//! What is done to an item: a list of stages, each a checkpoint.
//!
//! # Layout
//!
//! - `file` is the file format, `plan` the checked and resolved file, `mistake` an error in it; `default.toml` applies without a
//!   file, with one of the two files beside it.
//! - `run` takes one item through its stages, `results` is what gets stored; [`fetch`] gets what belongs to an item.

pub mod fetch;
mod file;
mod mistake;
mod models;
mod plan;
mod results;
mod run;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gleaner::{Context, Failure, Item};
use gleaner_stages::failure::{VALIDATION, cancelled};
use gleaner_stages::{Report, Silent};
use serde_json::Value;

pub use self::mistake::{Error, Mistake};
use self::plan::{Kind, Plan, Queue};
use self::run::Run;
pub use gleaner_stages::fetch::Fetch;
pub use gleaner_stages::models::{Kind as ModelKind, Model, Models};

/// The pipelines of an agent without a pipeline file. A model that the environment names makes insights of dumps; otherwise
/// patterns do.
fn built_in(variable: impl Fn(&str) -> Option<String>) -> String {
    let common = include_str!("pipeline/default.toml");
    if variable("GLEANER_MODEL_URL").is_none() {
        return format!("{common}{}", include_str!("pipeline/without_model.toml"));
    }
    let name = toml::Value::String(variable("GLEANER_MODEL").unwrap_or_else(|| "default".to_owned()));
    let key = if variable("GLEANER_MODEL_KEY").is_some() { "key_env = \"GLEANER_MODEL_KEY\"\n" } else { "" };
    format!("{common}{}model   = {name}\n{key}", include_str!("pipeline/with_model.toml"))
}

/// Matches every other kind.
const ANY: &str = "*";

/// What a pipeline uses beyond the item.
#[derive(Debug, Clone)]
pub struct Services {
    pub fetch: Arc<dyn Fetch>,
    pub models: Models,
    /// Where recordings are stored while they are worked on.
    pub home: PathBuf,
}

/// The pipelines of a file, by queue and kind. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pipelines {
    plan: Arc<Plan>,
}

/// A kind that cannot be worked here, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub queue: String,
    pub kind: String,
    pub stage: String,
    pub why: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{} is not claimed: stage {}: {}", self.queue, self.kind, self.stage, self.why)
    }
}

impl Pipelines {
    /// Loads the pipelines of a file, or the built-in ones, which process text offline.
    pub fn load(path: Option<&Path>) -> Result<Self, Error> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let Some(path) = path else { return Self::parse(&built_in(variable), Path::new("."), "the built-in pipelines") };
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { file: path.to_owned(), source })?;
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self::parse(&text, whole.parent().unwrap_or(Path::new("/")), &path.display().to_string())
    }

    /// Like [`Self::load`], from a text. Files that it names are looked up in `folder`.
    pub fn parse(text: &str, folder: &Path, name: &str) -> Result<Self, Error> {
        let file: file::File = toml::from_str(text).map_err(|source| Error::Syntax { file: name.into(), source: Box::new(source) })?;
        let mut mistakes = mistake::Mistakes::of(text);
        let plan = Plan::of(&file, folder, &mut mistakes);
        let mut mistakes = mistakes.found;
        mistakes.sort_by_key(|mistake| mistake.line);
        if mistakes.is_empty() { Ok(Self { plan: Arc::new(plan) }) } else { Err(Error::Mistakes { file: name.into(), mistakes }) }
    }

    /// Queues with at least one kind that can be processed here.
    pub fn queues(&self) -> Vec<&str> {
        self.plan.queues.iter().filter(|(_, queue)| queue.kinds.values().any(runs)).map(|(name, _)| name.as_str()).collect()
    }

    /// The kinds to claim from a queue. None means every kind.
    pub fn kinds(&self, queue: &str) -> Option<Vec<String>> {
        let Some(queue) = self.plan.queues.get(queue) else { return Some(Vec::new()) };
        if queue.kinds.get(ANY).is_some_and(runs) {
            return None;
        }
        Some(queue.kinds.iter().filter(|(name, kind)| *name != ANY && runs(kind)).map(|(name, _)| name.clone()).collect())
    }

    /// Kinds in the file that cannot be processed here. They are processed by the pipeline of `*` instead, if that one can run.
    pub fn missing(&self) -> Vec<Missing> {
        let all = self.plan.queues.iter().flat_map(|(queue, plan)| plan.kinds.iter().map(move |(kind, plan)| (queue, kind, plan)));
        all.filter_map(|(queue, kind, plan)| {
            let (stage, why) = plan.lacks.clone()?;
            Some(Missing { queue: queue.clone(), kind: kind.clone(), stage, why })
        })
        .collect()
    }

    /// How long an item of that kind may take, if the file sets it.
    pub fn time_limit<'a>(&self, queue: &str, kind: impl Into<Option<&'a str>>) -> Option<Duration> {
        self.find(queue, kind.into())?.1.time_limit
    }

    /// What this agent can do, for other programs: `activities/sms`, and the kinds of its models.
    pub fn capabilities(&self) -> Vec<String> {
        let kinds = self
            .plan
            .queues
            .iter()
            .flat_map(|(queue, plan)| plan.kinds.iter().filter(|(_, kind)| runs(kind)).map(move |(kind, _)| format!("{queue}/{kind}")));
        let models = self.plan.models.iter().filter(|model| model.lacks().is_none()).map(|model| format!("model:{}", model.kind.as_str()));
        let mut all: Vec<String> = kinds.chain(models).collect();
        all.sort();
        all.dedup();
        all
    }

    pub fn models(&self) -> &Models {
        &self.plan.models
    }

    /// The stages of a kind, by name and in order.
    pub fn stages<'a>(&self, queue: &str, kind: impl Into<Option<&'a str>>) -> Option<Vec<&str>> {
        Some(self.find(queue, kind.into())?.1.stages.iter().map(|stage| stage.name.as_str()).collect())
    }

    fn find(&self, queue: &str, kind: Option<&str>) -> Option<(&Queue, &Kind)> {
        let queue = self.plan.queues.get(queue)?;
        let own = kind.and_then(|kind| queue.kinds.get(kind)).filter(|kind| runs(kind));
        Some((queue, own.or_else(|| queue.kinds.get(ANY).filter(|kind| runs(kind)))?))
    }

    /// Takes an item through its stages. The result of each stage is stored with the item before the next one starts.
    pub async fn run(&self, queue: &str, item: Item, context: Context, services: &Services) -> Result<Option<Value>, Failure> {
        let report = context.clone();
        tokio::select! {
            result = self.through(queue, &item, services, &report) => result.map(Some),
            // The running stage is dropped, which also ends its command.
            () = context.ended() => Err(cancelled()),
        }
    }

    /// Like [`Self::run`] without a queue: nothing is claimed and nothing is stored. For trying out a pipeline.
    pub async fn try_out(&self, queue: &str, item: &Item, services: &Services) -> Result<Value, Failure> {
        self.through(queue, item, services, &Silent).await
    }

    async fn through(&self, name: &str, item: &Item, services: &Services, report: &dyn Report) -> Result<Value, Failure> {
        let Some((queue, kind)) = self.find(name, item.kind.as_deref()) else {
            let kind = item.kind.as_deref().unwrap_or(ANY);
            return Err(Failure::new(format!("this agent has no pipeline for {name}/{kind}")).category(VALIDATION));
        };
        Run { plan: &self.plan, queue, kind, name, item, services, report }.through().await
    }
}

fn runs(kind: &Kind) -> bool {
    kind.lacks.is_none()
}

#[cfg(test)]
mod tests;
