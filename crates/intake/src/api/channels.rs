//! `/v1/channels`: the acts on channels, on behalf of the caller.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gleaner_http::describe::{Conflict, Denied, Invalid, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, Query, WireError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::Api;
use super::failure::refuse;
use crate::channels::{Changes, Channels, NewChannel, Opened, Refusals, Result, Summary, Tested, WebhookUrl, flatten, nest};

/// A previous secret is valid for a day unless the request says otherwise.
const A_DAY_IN_SECONDS: f64 = 86_400.0;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ChannelPath {
    /// Name or id of the channel.
    #[param(example = "Support line")]
    channel: String,
}

/// List the channels
#[utoipa::path(
    get,
    path = "/v1/channels",
    operation_id = "listChannels",
    tag = "channels",
    responses((status = 200, description = "The channels that the caller may see.", body = Vec<Summary>), Denied)
)]
pub(crate) async fn list(State(api): State<Api>, caller: Caller) -> Result<Json<Vec<Summary>>, WireError> {
    let listed = api.channels.on_behalf_of(caller.clone()).list().await;
    listed.map(Json).map_err(|error| refuse(&caller, error))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddChannelRequest {
    name: String,
    /// A code of `/v1/providers`.
    provider: String,
    #[serde(default)]
    settings: Map<String, Value>,
    /// E-mail address or id of a salesperson.
    owner: Option<Owner>,
    #[serde(default)]
    auto_create_contacts: bool,
    /// A key from elsewhere. A new one is made when left out.
    ingestion_key: Option<String>,
}

/// People use addresses, programs use ids.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ChannelOwner)]
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

/// A channel's key in clear, and its URL.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChannelKey {
    id: Uuid,
    /// In clear.
    ingestion_key: String,
    #[serde(flatten)]
    url: WebhookUrl,
}

/// A channel, with its key in clear if that was just made.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChannelWithKey {
    #[serde(flatten)]
    channel: Summary,
    #[serde(flatten)]
    url: Option<WebhookUrl>,
}

/// Add a channel
///
/// The response shows the ingestion key in clear; otherwise only `key` does.
#[utoipa::path(
    post,
    path = "/v1/channels",
    operation_id = "addChannel",
    tag = "channels",
    request_body(
        content = AddChannelRequest,
        example = json!({"name": "Support line", "provider": "generic", "settings": {"scheme": "none"}})
    ),
    responses((status = 201, description = "The new channel.", body = ChannelWithKey), Denied, InvalidBody, Conflict)
)]
pub(crate) async fn add(
    State(api): State<Api>,
    caller: Caller,
    Body(body): Body<AddChannelRequest>,
) -> Result<(StatusCode, Json<ChannelWithKey>), WireError> {
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

/// Show a channel
#[utoipa::path(
    get,
    path = "/v1/channels/{channel}",
    operation_id = "showChannel",
    tag = "channels",
    params(ChannelPath),
    responses((status = 200, description = "The channel.", body = Summary), Denied, Invalid, NotFound, Conflict)
)]
pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Path(ChannelPath { channel }): Path<ChannelPath>,
) -> Result<Json<Summary>, WireError> {
    let channels = api.channels.on_behalf_of(caller.clone());
    let shown = channels.get(&channel).await.map(|opened| channels.summary(&opened));
    shown.map(Json).map_err(|error| refuse(&caller, error))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetChannelRequest {
    name: Option<String>,
    /// Null for no owner.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Owner>)]
    owner: Option<Option<Owner>>,
    is_active: Option<bool>,
    auto_create_contacts: Option<bool>,
    /// Null removes a setting, a mask keeps a secret.
    #[serde(default)]
    settings: Map<String, Value>,
}

/// Distinguishes null from a missing field.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Owner>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Change a channel
///
/// Fields that are left out do not change. A setting that is null is removed; a masked secret is kept.
#[utoipa::path(
    patch,
    path = "/v1/channels/{channel}",
    operation_id = "setChannel",
    tag = "channels",
    params(ChannelPath),
    request_body(content = SetChannelRequest, example = json!({"is_active": false})),
    responses((status = 200, description = "The channel.", body = Summary), Denied, InvalidBody, NotFound, Conflict)
)]
pub(crate) async fn set(
    State(api): State<Api>,
    caller: Caller,
    Path(ChannelPath { channel }): Path<ChannelPath>,
    Body(body): Body<SetChannelRequest>,
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

/// Delete a channel
///
/// Its activities stay.
#[utoipa::path(
    delete,
    path = "/v1/channels/{channel}",
    operation_id = "deleteChannel",
    tag = "channels",
    params(ChannelPath),
    responses((status = 204, description = "It is deleted."), Denied, Invalid, NotFound, Conflict)
)]
pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    Path(ChannelPath { channel }): Path<ChannelPath>,
) -> Result<StatusCode, WireError> {
    let deleted = api.channels.on_behalf_of(caller.clone()).delete(&channel).await;
    deleted.map(|()| StatusCode::NO_CONTENT).map_err(|error| refuse(&caller, error))
}

/// Show a channel's key
///
/// The ingestion key in clear, and the URL with it, for callers that may read the channel's row.
#[utoipa::path(
    get,
    path = "/v1/channels/{channel}/key",
    operation_id = "showChannelKey",
    tag = "channels",
    params(ChannelPath),
    responses((status = 200, description = "The key.", body = ChannelKey), Denied, Invalid, NotFound, Conflict)
)]
pub(crate) async fn key(
    State(api): State<Api>,
    caller: Caller,
    Path(ChannelPath { channel }): Path<ChannelPath>,
) -> Result<Json<ChannelKey>, WireError> {
    let channels = api.channels.on_behalf_of(caller.clone());
    let revealed = channels.get(&channel).await.and_then(|opened| reveal(&api, &opened));
    revealed.map(Json).map_err(|error| refuse(&caller, error))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateRequest {
    /// The secret setting to replace. The ingestion key when left out.
    setting: Option<String>,
    /// The new secret, as the provider gave it.
    value: Option<String>,
    /// How long the previous one stays valid: by default a day for a secret, no time for the key.
    #[schema(minimum = 0, maximum = 31_622_400)]
    keep_for_seconds: Option<f64>,
}

/// Rotate a key or a secret
///
/// Without `setting`, replaces the ingestion key by a new one.
#[utoipa::path(
    post,
    path = "/v1/channels/{channel}/rotate",
    operation_id = "rotateChannelSecret",
    tag = "channels",
    params(ChannelPath),
    request_body(content = RotateRequest, example = json!({"keep_for_seconds": 3600})),
    responses((status = 200, description = "The channel.", body = ChannelWithKey), Denied, InvalidBody, NotFound, Conflict)
)]
pub(crate) async fn rotate(
    State(api): State<Api>,
    caller: Caller,
    Path(ChannelPath { channel }): Path<ChannelPath>,
    Body(body): Body<RotateRequest>,
) -> Result<Json<ChannelWithKey>, WireError> {
    let channels = api.channels.on_behalf_of(caller.clone());
    let wrong = |message: &str| WireError::new(StatusCode::BAD_REQUEST, "22023", message);
    // A leaked key must end at once. A sender's secret is changed at the sender, which takes a while.
    let seconds = body.keep_for_seconds.unwrap_or(if body.setting.is_some() { A_DAY_IN_SECONDS } else { 0.0 });
    let keep_for = Duration::try_from_secs_f64(seconds).ok().filter(|time| time.as_secs() <= 366 * 86_400);
    let keep_for = keep_for.ok_or_else(|| wrong("keep_for_seconds must be between 0 and a year"))?;
    let rotated = match (body.setting, body.value) {
        (Some(setting), Some(value)) => {
            let opened = channels.rotate_secret(&channel, &setting, value.into(), keep_for).await;
            opened.map(|opened| ChannelWithKey { channel: channels.summary(&opened), url: None })
        }
        (None, None) => channels.rotate_key(&channel, keep_for).await.and_then(|opened| with_key(&api, &channels, &opened)),
        (Some(_), None) => return Err(wrong("value is missing: the new secret, as the provider gave it")),
        (None, Some(_)) => return Err(wrong("setting is missing: which secret the value is; ingestion keys are made here")),
    };
    rotated.map(Json).map_err(|error| refuse(&caller, error))
}

/// Test a channel
///
/// Sends a signed sample to the webhook endpoint.
#[utoipa::path(
    post,
    path = "/v1/channels/{channel}/test",
    operation_id = "testChannel",
    tag = "channels",
    params(ChannelPath),
    responses((status = 200, description = "What happened to the sample.", body = Tested), Denied, Invalid, NotFound, Conflict)
)]
pub(crate) async fn test(
    State(api): State<Api>,
    caller: Caller,
    Path(ChannelPath { channel }): Path<ChannelPath>,
) -> Result<Json<Tested>, WireError> {
    let tested = api.channels.on_behalf_of(caller.clone()).test(&channel, &api.addresses).await;
    tested.map(Json).map_err(|error| refuse(&caller, error))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RefusalsQuery {
    /// The most rows to return.
    #[param(minimum = 1, maximum = 10_000, default = 100)]
    limit: Option<i64>,
}

/// List the requests that a channel refused
///
/// Counted per minute and reason, newest first.
#[utoipa::path(
    get,
    path = "/v1/channels/{channel}/refusals",
    operation_id = "listRefusals",
    tag = "channels",
    params(ChannelPath, RefusalsQuery),
    responses((status = 200, description = "The latest refusals.", body = Vec<Refusals>), Denied, Invalid, NotFound, Conflict)
)]
pub(crate) async fn refusals(
    State(api): State<Api>,
    caller: Caller,
    Path(ChannelPath { channel }): Path<ChannelPath>,
    Query(query): Query<RefusalsQuery>,
) -> Result<Json<Vec<Refusals>>, WireError> {
    let limit = Some(query.limit.unwrap_or(100)).filter(|limit| (1..=10_000).contains(limit));
    let limit = limit.ok_or_else(|| WireError::new(StatusCode::BAD_REQUEST, "22023", "limit must be between 1 and 10000"))?;
    let listed = api.channels.on_behalf_of(caller.clone()).refusals(&channel, limit).await;
    listed.map(Json).map_err(|error| refuse(&caller, error))
}

fn reveal(api: &Api, opened: &Opened) -> Result<ChannelKey> {
    Ok(ChannelKey { id: opened.channel.id, ingestion_key: opened.key()?.to_owned(), url: opened.webhook_url(api.base())? })
}

/// The channel with its key in clear, as after adding one.
fn with_key(api: &Api, channels: &Channels, opened: &Opened) -> Result<ChannelWithKey> {
    let ChannelKey { ingestion_key, url, .. } = reveal(api, opened)?;
    Ok(ChannelWithKey { channel: Summary { ingestion_key, ..channels.summary(opened) }, url: Some(url) })
}
