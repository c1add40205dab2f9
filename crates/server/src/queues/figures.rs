//! `/v1/figures`: latencies and counts of the queues. Computed once per server, and only when a caller asks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::FutureExt as _;
use gleaner::{Error, registry};
use gleaner_http::describe::{Denied, Invalid};
use gleaner_http::{Caller, Query, WireError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::Queues;
use super::failure::refuse;
use super::key::Key;
use super::transaction::with_caller;

/// How long figures are shown before new ones are made.
const FRESH: Duration = Duration::from_secs(15);
/// How long it is remembered what a caller may see.
const ALLOWED: Duration = Duration::from_secs(120);
/// The most callers that are remembered. When there are more, they are asked for again.
const MOST_CALLERS: usize = 10_000;
/// The most samples of the agents that are kept, for the share of time in which they had no work.
const MOST_SAMPLES: usize = 240;

/// What was made, for whom to see.
#[derive(Debug, Default)]
pub(super) struct Figures {
    made: Mutex<HashMap<Range, (Instant, Arc<Made>)>>,
    /// Held while figures are made, so that they are made once.
    making: tokio::sync::Mutex<()>,
    allowed: Mutex<HashMap<Key, (Instant, Allowed)>>,
    samples: Mutex<Vec<Sample>>,
}

/// How many agents were there, and how many of them had work.
#[derive(Debug, Clone, Copy)]
struct Sample {
    online: i64,
    busy: i64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, ToSchema)]
pub(crate) enum Range {
    #[default]
    #[serde(rename = "1h")]
    Hour,
    #[serde(rename = "24h")]
    Day,
    #[serde(rename = "7d")]
    Week,
}

impl Range {
    /// Its length and that of its slices, in seconds.
    fn seconds(self) -> (i64, i64) {
        match self {
            Self::Hour => (3600, 60),
            Self::Day => (86_400, 1800),
            Self::Week => (604_800, 10_800),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Allowed {
    is_member: bool,
    pub(super) is_administrator: bool,
    queues: HashMap<String, String>,
}

/// Figures of all queues.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Made {
    at: String,
    pub(super) queues: BTreeMap<String, Value>,
    channels: Value,
    pub(super) online: i64,
    pub(super) busy: i64,
    idle: Option<f64>,
    samples: usize,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FiguresQuery {
    /// Of which stretch of time; an hour when left out.
    #[serde(default)]
    #[param(inline)]
    range: Range,
}

/// How the queues do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FiguresResponse {
    /// When they were made.
    at: String,
    range_seconds: i64,
    slice_seconds: i64,
    /// For each queue that the caller may see: `counts` by state; of the newest rows created within the range, how many were
    /// `sampled`, `done`, `dead`, `stolen` (of `owned`), `within_30s` (of `timed`), `p50`, `p95`, `p99` in seconds until they were
    /// `finished` or `taken` (`measures`), and `slices` of start, arrived, done, dead, p95.
    #[schema(value_type = Object)]
    queues: BTreeMap<String, Value>,
    agents: AgentFigures,
    /// For administrators: each channel with `id`, `name`, `is_active` and `last`, when its last event arrived; null for others.
    #[schema(required, value_type = Option<Vec<Object>>)]
    channels: Option<Value>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentFigures {
    /// Devices that called within two minutes.
    online: i64,
    /// Those that have work.
    busy: i64,
    /// The share of samples of a device in which it had no work.
    #[schema(required)]
    idle: Option<f64>,
    /// How many samples that share is computed from.
    samples: usize,
}

/// How the queues do
///
/// Figures are at most fifteen seconds old.
#[utoipa::path(
    get,
    path = "/v1/figures",
    tag = "operations",
    params(FiguresQuery),
    responses(
        (status = 200, description = "The figures.", body = FiguresResponse,
            example = json!({"at": "2026-01-02T03:04:05Z", "range_seconds": 3600, "slice_seconds": 60,
                "queues": {"jobs": {"counts": [{"state": "ready", "count": 3, "capped": false, "oldest_seconds": 1.5}], "sampled": 40, "done": 37}},
                "agents": {"online": 2, "busy": 1, "idle": 0.5, "samples": 10}, "channels": null})),
        Denied, Invalid,
    )
)]
pub(crate) async fn figures(
    State(queues): State<Queues>,
    caller: Caller,
    Query(query): Query<FiguresQuery>,
) -> Result<Json<FiguresResponse>, WireError> {
    let allowed = queues.allowed(&caller).await.map_err(|error| refuse(&caller, &error))?;
    if !allowed.is_member {
        return Err(WireError::new(StatusCode::FORBIDDEN, "42501", "figures are for the team"));
    }
    let made = queues.figures(query.range).await.map_err(|error| refuse(&caller, &error))?;
    let (range_seconds, slice_seconds) = query.range.seconds();
    let mut shown = made.queues.clone();
    shown.retain(|name, _| allowed.queues.get(name).is_some_and(|scope| scope != "none"));
    let agents = AgentFigures { online: made.online, busy: made.busy, idle: made.idle, samples: made.samples };
    Ok(Json(FiguresResponse {
        at: made.at.clone(),
        range_seconds,
        slice_seconds,
        queues: shown,
        agents,
        channels: allowed.is_administrator.then(|| made.channels.clone()),
    }))
}

impl Queues {
    /// The figures of the range, made now if they are too old. While others are being made, older ones do.
    pub(super) async fn figures(&self, range: Range) -> Result<Arc<Made>, Error> {
        let store = &self.shared.figures;
        let known = |most: Duration| {
            let made = store.made.lock().expect("no panic holds it");
            made.get(&range).filter(|(at, _)| at.elapsed() < most).map(|(_, figures)| figures.clone())
        };
        if let Some(made) = known(FRESH) {
            return Ok(made);
        }
        let _making = match (store.making.try_lock(), known(FRESH * 20)) {
            (Ok(making), _) => making,
            (Err(_), Some(older)) => return Ok(older),
            (Err(_), None) => store.making.lock().await,
        };
        if let Some(made) = known(FRESH) {
            return Ok(made);
        }
        let made = Arc::new(self.make(range).await?);
        store.made.lock().expect("no panic holds it").insert(range, (Instant::now(), made.clone()));
        Ok(made)
    }

    async fn make(&self, range: Range) -> Result<Made, Error> {
        let client = self.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let entries = registry::list(&**client).await?;
        let (length, slice) = range.seconds();
        let mut queues = BTreeMap::new();
        for entry in entries {
            // A broken queue must not hide the others.
            let found = match self.view_of(&entry).await {
                Ok(view) => view.figures(&**client, length, slice).await,
                Err(error) => Err(error),
            };
            let figures = found.unwrap_or_else(|error| {
                tracing::debug!(%error, queue = entry.name, "no figures");
                json!({"counts": [], "slices": [], "broken": error.to_string()})
            });
            queues.insert(entry.name, figures);
        }
        let sql = "select to_jsonb(clock_timestamp()) #>> '{}', count(*) filter (where n.last_heartbeat > now() - interval '2 minutes' and n.status <> 'offline'),
                          count(*) filter (where n.last_heartbeat > now() - interval '2 minutes' and n.status = 'processing'),
                          (select coalesce(jsonb_agg(jsonb_build_object('id', p.id, 'name', p.name, 'is_active', p.is_active, 'last',
                                      (select max(a.created_at) from public.activities as a where a.provider_id = p.id)) order by p.name), '[]')
                           from (select * from public.ingestion_providers order by name limit 50) as p)
                   from public.crm_processing_nodes as n";
        let rows = client.query_typed(sql, &[]).await.map_err(Error::doing("count the agents"))?;
        let (at, sample) = (rows[0].get(0), Sample { online: rows[0].get(1), busy: rows[0].get(2) });
        let (idle, samples) = self.shared.figures.note(sample);
        Ok(Made { at, queues, channels: rows[0].get(3), online: sample.online, busy: sample.busy, idle, samples })
    }

    /// What the caller may see, asked of the database from time to time.
    pub(super) async fn allowed(&self, caller: &Caller) -> Result<Allowed, Error> {
        let Caller::Token { claims, .. } = caller else {
            return Ok(Allowed { is_member: true, is_administrator: true, queues: HashMap::new() });
        };
        let key = Key::of(&Value::Object(claims.clone()));
        let store = &self.shared.figures.allowed;
        let known =
            store.lock().expect("no panic holds it").get(&key).filter(|(at, _)| at.elapsed() < ALLOWED).map(|(_, known)| known.clone());
        if let Some(known) = known {
            return Ok(known);
        }
        let asked = with_caller(&self.shared.pool, caller, |transaction| {
            async move {
                let rows = transaction.query_typed("select gleaner.me()", &[]).await.map_err(Error::doing("ask who is calling"))?;
                Ok::<Value, Error>(rows[0].get(0))
            }
            .boxed()
        });
        let me = asked.await?;
        let queues = serde_json::from_value(me["queues"].clone()).unwrap_or_default();
        let allowed = Allowed { is_member: me["member"] == true, is_administrator: me["administrator"] == true, queues };
        let mut store = store.lock().expect("no panic holds it");
        if store.len() >= MOST_CALLERS {
            store.clear();
        }
        store.insert(key, (Instant::now(), allowed.clone()));
        Ok(allowed)
    }
}

impl Figures {
    /// Adds a sample of the agents, and returns the share of idle ones in all samples, and how many there were.
    fn note(&self, sample: Sample) -> (Option<f64>, usize) {
        let mut samples = self.samples.lock().expect("no panic holds it");
        if samples.len() >= MOST_SAMPLES {
            samples.remove(0);
        }
        samples.push(sample);
        let (online, busy) = samples.iter().fold((0, 0), |(online, busy), one| (online + one.online, busy + one.busy));
        ((online > 0).then(|| (online - busy) as f64 / online as f64), usize::try_from(online).unwrap_or(0))
    }
}
