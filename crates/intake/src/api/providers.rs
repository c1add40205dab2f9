//! `/v1/providers`: the settings of each provider's channels.

use axum::Json;
use axum::extract::State;
use gleaner_http::Caller;
use gleaner_ingest::Setting;
use gleaner_ingest::providers::COMMON;
use serde_json::{Value, json};

use super::Api;

/// Every provider with its settings, for forms.
pub(super) async fn list(State(api): State<Api>, _: Caller) -> Json<Value> {
    let settings =
        |setting: &Setting| json!({"name": setting.name, "secret": setting.secret, "required": setting.required, "about": setting.about});
    let providers = api.channels.providers().iter().map(|provider| {
        let own = provider.settings().iter().chain(COMMON).map(settings).collect::<Vec<_>>();
        json!({"code": provider.code(), "title": provider.title(), "settings": own})
    });
    Json(providers.collect())
}
