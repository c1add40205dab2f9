//! `/v1/providers`: the settings of each provider's channels.

use axum::Json;
use axum::extract::State;
use gleaner_http::Caller;
use gleaner_http::describe::Denied;
use gleaner_ingest::Setting;
use gleaner_ingest::providers::COMMON;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;

/// A provider, with the settings of its channels.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Provider {
    code: &'static str,
    title: &'static str,
    settings: Vec<ProviderSetting>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ProviderSetting {
    name: &'static str,
    secret: bool,
    required: bool,
    about: &'static str,
}

impl From<&Setting> for ProviderSetting {
    fn from(setting: &Setting) -> Self {
        Self { name: setting.name, secret: setting.secret, required: setting.required, about: setting.about }
    }
}

/// List the providers
///
/// Every provider with the settings of its channels, for forms.
#[utoipa::path(
    get,
    path = "/v1/providers",
    operation_id = "listProviders",
    tag = "channels",
    responses(
        (status = 200, description = "The providers.", body = Vec<Provider>,
            example = json!([{
                "code": "generic",
                "title": "Any JSON",
                "settings": [{"name": "scheme", "secret": false, "required": true, "about": "how requests prove themselves"}]
            }])),
        Denied,
    )
)]
pub(crate) async fn list(State(api): State<Api>, _: Caller) -> Json<Vec<Provider>> {
    let providers = api.channels.providers().iter().map(|provider| {
        let settings = provider.settings().iter().chain(COMMON).map(ProviderSetting::from).collect();
        Provider { code: provider.code(), title: provider.title(), settings }
    });
    Json(providers.collect())
}
