//! `/v1/channels`: the acts on channels, on behalf of the caller.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use gleaner_http::{Body, Caller, WireError};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::Api;
use super::failure::refuse;
use crate::channels::{Changes, Channels, NewChannel, Opened, Refusals, Result, Summary, Tested, flatten, nest};

/// A previous secret is valid for a day unless the request says otherwise.
const A_DAY_IN_SECONDS: f64 = 86_400.0;

pub(super) async fn list(State(api): State<Api>, caller: Caller) -> Result<Json<Vec<Summary>>, WireError> {
    let listed = api.channels.on_behalf_of(caller.clone()).list().await;
    listed.map(Json).map_err(|error| refuse(&caller, error))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Add {
    name: String,
    provider: String,
    #[serde(default)]
    settings: Map<String, Value>,
    /// E-mail address or id.
    owner: Option<Owner>,
    #[serde(default)]
    auto_create_contacts: bool,
    ingestion_key: Option<String>,
}

/// People use addresses, programs use ids.
#[derive(Deserialize)]
#[serde(untagged)]
enum Owner {
    Id(i64),
    Email(String),
}

impl Owner {
    fn text(self) -> String {
        match self {
            Self::Id(id) => id.to_string(),
            Self::Email(email) => email,
        }
    }
}

pub(super) async fn add(State(api): State<Api>, caller: Caller, Body(body): Body<Add>) -> Result<(StatusCode, Json<Value>), WireError> {
    let channels = api.channels.on_behalf_of(caller.clone());
    let new = NewChannel {
        settings: nest(flatten(channels.provider(&body.provider), &body.settings)),
        name: body.name,
        provider_code: body.provider,
        owner: body.owner.map(Owner::text),
        auto_create_contacts: body.auto_create_contacts,
        ingestion_key: body.ingestion_key.map(Zeroizing::new),
    };
    let added = channels.add(new).await.and_then(|opened| with_key(&api, &channels, &opened));
    added.map(|shown| (StatusCode::CREATED, Json(shown))).map_err(|error| refuse(&caller, error))
}

pub(super) async fn show(State(api): State<Api>, caller: Caller, Path(channel): Path<String>) -> Result<Json<Summary>, WireError> {
    let channels = api.channels.on_behalf_of(caller.clone());
    let shown = channels.get(&channel).await.map(|opened| channels.summary(&opened));
    shown.map(Json).map_err(|error| refuse(&caller, error))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    name: Option<String>,
    /// Null for no owner.
    #[serde(default, deserialize_with = "given")]
    owner: Option<Option<Owner>>,
    is_active: Option<bool>,
    auto_create_contacts: Option<bool>,
    /// Null removes a setting, a mask keeps a secret.
    #[serde(default)]
    settings: Map<String, Value>,
}

/// Distinguishes null from a missing field.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Owner>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

pub(super) async fn set(
    State(api): State<Api>,
    caller: Caller,
    Path(channel): Path<String>,
    Body(body): Body<Set>,
) -> Result<Json<Summary>, WireError> {
    let channels = api.channels.on_behalf_of(caller.clone());
    let act = async {
        // Which settings are nested depends on the provider.
        let provider = channels.get(&channel).await.map(|opened| channels.provider(&opened.channel.provider_code))?;
        let changes = Changes {
            name: body.name,
            owner: body.owner.map(|owner| owner.map(Owner::text)),
            is_active: body.is_active,
            auto_create_contacts: body.auto_create_contacts,
            settings: flatten(provider, &body.settings),
            keep_for: None,
        };
        channels.set(&channel, changes).await.map(|opened| channels.summary(&opened))
    };
    act.await.map(Json).map_err(|error| refuse(&caller, error))
}

pub(super) async fn delete(State(api): State<Api>, caller: Caller, Path(channel): Path<String>) -> Result<StatusCode, WireError> {
    let deleted = api.channels.on_behalf_of(caller.clone()).delete(&channel).await;
    deleted.map(|()| StatusCode::NO_CONTENT).map_err(|error| refuse(&caller, error))
}

/// The key in clear and the URL with it, for callers that may read the row.
pub(super) async fn key(State(api): State<Api>, caller: Caller, Path(channel): Path<String>) -> Result<Json<Value>, WireError> {
    let channels = api.channels.on_behalf_of(caller.clone());
    let revealed = channels.get(&channel).await.and_then(|opened| reveal(&api, &opened));
    revealed.map(Json).map_err(|error| refuse(&caller, error))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotate {
    /// The secret setting to replace. The ingestion key when left out.
    setting: Option<String>,
    /// The new secret.
    value: Option<String>,
    keep_for_seconds: Option<f64>,
}

pub(super) async fn rotate(
    State(api): State<Api>,
    caller: Caller,
    Path(channel): Path<String>,
    Body(body): Body<Rotate>,
) -> Result<Json<Value>, WireError> {
    let channels = api.channels.on_behalf_of(caller.clone());
    let wrong = |message: &str| WireError::new(StatusCode::BAD_REQUEST, "22023", message);
    // A leaked key must end at once. A sender's secret is changed at the sender, which takes a while.
    let seconds = body.keep_for_seconds.unwrap_or(if body.setting.is_some() { A_DAY_IN_SECONDS } else { 0.0 });
    let keep_for = Duration::try_from_secs_f64(seconds).ok().filter(|time| time.as_secs() <= 366 * 86_400);
    let keep_for = keep_for.ok_or_else(|| wrong("keep_for_seconds must be between 0 and a year"))?;
    let rotated = match (body.setting, body.value) {
        (Some(setting), Some(value)) => {
            let opened = channels.rotate_secret(&channel, &setting, value.into(), keep_for).await;
            opened.map(|opened| json!(channels.summary(&opened)))
        }
        (None, None) => channels.rotate_key(&channel, keep_for).await.and_then(|opened| with_key(&api, &channels, &opened)),
        (Some(_), None) => return Err(wrong("value is missing: the new secret, as the provider gave it")),
        (None, Some(_)) => return Err(wrong("setting is missing: which secret the value is; ingestion keys are made here")),
    };
    rotated.map(Json).map_err(|error| refuse(&caller, error))
}

pub(super) async fn test(State(api): State<Api>, caller: Caller, Path(channel): Path<String>) -> Result<Json<Tested>, WireError> {
    let tested = api.channels.on_behalf_of(caller.clone()).test(&channel, &api.addresses).await;
    tested.map(Json).map_err(|error| refuse(&caller, error))
}

pub(super) async fn refusals(
    State(api): State<Api>,
    caller: Caller,
    Path(channel): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<Refusals>>, WireError> {
    let limit = query.as_deref().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("limit="));
    let limit = limit.map_or(Ok(100), str::parse).ok().filter(|limit| (1..=10_000).contains(limit));
    let limit = limit.ok_or_else(|| WireError::new(StatusCode::BAD_REQUEST, "22023", "limit must be between 1 and 10000"))?;
    let listed = api.channels.on_behalf_of(caller.clone()).refusals(&channel, limit).await;
    listed.map(Json).map_err(|error| refuse(&caller, error))
}

fn reveal(api: &Api, opened: &Opened) -> Result<Value> {
    let url = opened.webhook_url(api.base())?;
    Ok(
        json!({"id": opened.channel.id, "ingestion_key": opened.key()?, "webhook_url": url.webhook_url, "url_with_overrides": url.url_with_overrides}),
    )
}

/// The channel with its key in clear, as after adding one.
fn with_key(api: &Api, channels: &Channels, opened: &Opened) -> Result<Value> {
    let mut shown = json!(channels.summary(opened));
    if let (Value::Object(shown), Value::Object(revealed)) = (&mut shown, reveal(api, opened)?) {
        shown.extend(revealed);
    }
    Ok(shown)
}
