//! Runs: recordings replayed in a browser, once for each line of their data.
//!
//! # Layout
//!
//! - [`Settings`] say what this machine offers. `recording` reads what is replayed, [`data`] what with, `secrets` masks.
//! - `browser` is a browser of its own for each run, `driver` speaks to it; `proxy` is its only way out, by the rules of `egress`.
//! - `page` does a step, `replay` a line. [`Runs::run`] takes one claimed run through all its lines. A finished line is stored by
//!   `gleaner.record_row`, under the lease: see `sql/systems/runs`.

mod browser;
pub mod data;
mod driver;
mod egress;
mod keys;
mod page;
mod proxy;
mod recording;
mod replay;
mod secrets;
mod settings;

use std::time::Duration;

use gleaner::queue::Progress;
use gleaner::worker::{Context, Replied, Reply};
use gleaner::{Failure, Item};
use gleaner_stages::fetch::Fetch;
use serde::Deserialize;
use serde_json::{Value, json};

use self::browser::Browser;
use self::egress::Egress;
use self::proxy::Proxy;
use self::replay::{Line, Replayed};
use self::secrets::Secrets;
use self::settings::Programs;
pub use self::settings::Settings;

/// The name of the queue.
pub const QUEUE: &str = "runs";
/// A killed agent's runs come back after this long.
pub const HOLD: Duration = Duration::from_secs(30);

/// Replays the runs of the queue `runs`.
#[derive(Debug)]
pub struct Runs {
    settings: Settings,
    programs: Programs,
}

/// The answer of `gleaner.begin_run`.
#[derive(Debug, Deserialize)]
struct Begun {
    content: Value,
    csv: Option<String>,
    #[serde(default)]
    config: Value,
    rows: usize,
    passed: usize,
}

impl Runs {
    /// Fails with what is missing on this machine.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let programs = Programs::find(&settings).map_err(str::to_owned)?;
        browser::sweep();
        Ok(Self { settings, programs })
    }

    /// The kinds that this machine takes.
    pub fn kinds(&self) -> Vec<String> {
        let labelled = self.settings.labels.iter().map(|label| format!("browser:{label}"));
        std::iter::once("browser".to_owned()).chain(labelled).collect()
    }

    /// Runs at once.
    pub fn slots(&self) -> usize {
        self.settings.slots
    }

    /// Takes one claimed run through all its lines.
    pub async fn run(&self, database: &dyn Fetch, item: Item, context: Context) -> Replied {
        tokio::select! {
            done = self.execute(database, &item, &context) => done,
            // Dropping the rest ends the browser.
            () = context.ended() => Ok(Reply::Ended),
        }
    }

    async fn execute(&self, database: &dyn Fetch, item: &Item, context: &Context) -> Replied {
        let answer = database.call("begin_run", json!({"id": item.key, "lease": item.lease, "slots": self.settings.per_site})).await?;
        match answer["outcome"].as_str() {
            Some("ready") => {}
            Some("deferred") => {
                tracing::info!(run = item.key, reason = answer["reason"].as_str(), "a run waits");
                return Ok(Reply::Snooze(Duration::from_secs_f64(answer["wait_seconds"].as_f64().unwrap_or(5.0))));
            }
            _ => return Ok(Reply::Ended),
        }
        let begun: Begun =
            serde_json::from_value(answer).map_err(|error| wrong(format!("the answer of begin_run cannot be read: {error}")))?;
        if begun.content.is_null() {
            return Err(wrong("its recording was deleted"));
        }
        let lines = data::lines(begun.csv.as_deref()).map_err(wrong)?;
        let of = lines.len();
        // A recording that does not fit its data is refused before a browser starts.
        let mut prepared = Vec::new();
        for (n, line) in lines.iter().enumerate().skip(begun.rows) {
            prepared.push((n + 1, self.line(&begun, line).map_err(|why| wrong(format!("row {}: {why}", n + 1)))?));
        }
        let (mut passed, mut failed) = (begun.passed, begun.rows - begun.passed);
        if !prepared.is_empty() {
            let starting = Progress { stage: Some("starting a browser".to_owned()), hold: Some(HOLD), ..Progress::default() };
            context.transport().progress(context.held(), &starting).await?;
            let proxy = Proxy::listen().await.map_err(|error| crashed(error.to_string()))?;
            let browser = Browser::start(&self.programs, proxy.port).await.map_err(crashed)?;
            for (n, line) in &prepared {
                let replayed = replay::replay(&browser, &proxy, line).await;
                let replayed = replayed.map_err(|why| crashed(line.secrets.mask(&format!("row {n}: {why}"))))?;
                let counter = if replayed.error.is_none() { &mut passed } else { &mut failed };
                *counter += 1;
                if !store(database, item, &begun, (*n, of), replayed).await? {
                    return Ok(Reply::Ended);
                }
            }
        }
        let outcome = if failed == 0 { "passed" } else { "failed" };
        let message = format!("{passed} of {of} {} passed", if of == 1 { "row" } else { "rows" });
        Ok(Reply::Complete(Some(json!({"outcome": outcome, "rows": of, "passed": passed, "failed": failed, "message": message}))))
    }

    /// The recording with the values of a line in it.
    fn line(&self, begun: &Begun, values: &data::Line) -> Result<Line, String> {
        let listed =
            |value: &Value| value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
        let mut secrets = Secrets::default();
        for name in listed(&begun.content["secrets"]).iter().chain(&listed(&begun.config["secrets"])) {
            secrets.add(values.get(name).map_or("", String::as_str));
        }
        let mut look = |name: &str| {
            if let Some(name) = name.strip_prefix("secret.") {
                let value = self
                    .settings
                    .secrets
                    .get(name)
                    .ok_or_else(|| format!("this agent has no secret {name}; set GLEANER_RUN_SECRET_{name} for it"))?;
                secrets.add(value);
                return Ok(value.clone());
            }
            values.get(name).cloned().ok_or_else(|| format!("the recording uses {{{{{name}}}}}, and the data has no such column"))
        };
        let content = data::fill(&begun.content, &mut look)?;
        let steps = recording::steps(&content)?;
        let mut egress = Egress::new(self.settings.allow.clone());
        for url in recording::opened(&steps) {
            egress.open(url)?;
        }
        listed(&content["sites"]).iter().for_each(|site| egress.also(site));
        Ok(Line { steps, secrets, egress })
    }
}

/// Stores the pictures, then the line. False: the run is no longer ours.
async fn store(database: &dyn Fetch, item: &Item, begun: &Begun, (n, of): (usize, usize), mut done: Replayed) -> Result<bool, Failure> {
    for picture in std::mem::take(&mut done.pictures) {
        let request = json!({"lease": item.lease, "row": n, "step": picture.step, "name": picture.name, "media_type": "image/png",
            "content": picture.png, "keep_days": begun.config["keep_days"]});
        // A run without its pictures is still a result.
        if let Err(failure) = database.store(&format!("/v1/runs/{}/artefacts", item.key), request).await {
            tracing::warn!(run = item.key, row = n, error = failure.message, "a screenshot was not stored");
            if let Some(step) = done.trace.iter_mut().find(|step| step["step"] == picture.step) {
                step["screenshot"] = json!(format!("not stored: {}", failure.message));
            }
        }
    }
    let request = json!({"id": item.key, "lease": item.lease, "row": n, "of": of, "steps": done.trace,
        "status": if done.error.is_none() { "passed" } else { "failed" }, "error": done.error, "failed_step": done.failed_step,
        "duration_ms": done.took.as_millis() as u64, "hold_seconds": HOLD.as_secs()});
    Ok(database.call("record_row", request).await?["outcome"] == "done")
}

/// Another try would end the same way.
fn wrong(why: impl Into<String>) -> Failure {
    Failure::new(why).category("RecordingError").for_good()
}

/// Another browser, or another machine, may do better.
fn crashed(why: impl Into<String>) -> Failure {
    Failure::new(why).category("BrowserError")
}
