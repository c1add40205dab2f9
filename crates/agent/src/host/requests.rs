//! The handlers for the page's requests.

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use serde::Deserialize;
use serde_json::{Value, json};

use super::serving::ConsentOutcome;
use super::store::Kept;
use super::{Error, Host, guard, locked, page};

/// Larger than any valid message.
const MOST_BODY: usize = 64 * 1024;

type Reply = Result<Response, Error>;

pub(super) fn routes(host: Host) -> Router {
    let asked_by_the_page = Router::new()
        .route("/api/apps", get(list).post(add))
        .route("/api/remove", post(remove))
        .route("/api/ask", post(ask))
        .route("/api/agree", post(agree))
        .route("/api/decline", post(decline))
        .route("/api/start", post(start))
        .route("/api/stop", post(stop))
        .route("/api/revoke", post(revoke))
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .layer(middleware::from_fn_with_state(host.clone(), guard::page_only));
    Router::new()
        .route("/", get(page::page))
        .route("/page.js", get(page::script))
        .route("/page.css", get(page::style))
        .merge(asked_by_the_page)
        .layer(middleware::from_fn(guard::this_machine_only))
        .with_state(host)
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::NoApp(_) => StatusCode::NOT_FOUND,
            Self::Outdated => StatusCode::CONFLICT,
            Self::File { .. } | Self::Spoiled { .. } | Self::Client(_) => {
                tracing::error!(error = %self, "the host page");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        fresh((status, Json(json!({"error": self.to_string()}))))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    name: String,
    url: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    name: String,
    message: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decide {
    name: String,
    proposal: String,
}

async fn list(State(host): State<Host>) -> Response {
    fresh(Json(host.view()))
}

async fn add(State(host): State<Host>, headers: HeaderMap, Json(asked): Json<Add>) -> Reply {
    let own = guard::own_authority(&headers);
    host.add(&asked.name, &asked.url, own.as_ref().map(|own| own.as_str()))?;
    Ok(fresh((StatusCode::CREATED, Json(host.view()))))
}

async fn remove(State(host): State<Host>, Json(asked): Json<Named>) -> Reply {
    host.remove(&asked.name).await?;
    Ok(fresh(Json(host.view())))
}

async fn ask(State(host): State<Host>, Json(asked): Json<Ask>) -> Reply {
    Ok(fresh(Json(match host.ask(&asked.name, asked.message)? {
        ConsentOutcome::Agreed { token } => host.granted(&asked.name, &token),
        ConsentOutcome::Ask { proposal, changed } => {
            json!({"decision": "ask", "proposal": proposal.id, "asks": proposal.place.shown(), "changed": changed})
        }
    })))
}

async fn agree(State(host): State<Host>, Json(asked): Json<Decide>) -> Reply {
    let token = host.agree(&asked.name, &asked.proposal).await?;
    Ok(fresh(Json(host.granted(&asked.name, &token))))
}

async fn decline(State(host): State<Host>, Json(asked): Json<Decide>) -> Reply {
    host.decline(&asked.name, &asked.proposal)?;
    Ok(fresh(Json(host.view())))
}

async fn start(State(host): State<Host>, Json(asked): Json<Named>) -> Reply {
    host.start(&asked.name).await?;
    Ok(fresh(Json(host.view())))
}

async fn stop(State(host): State<Host>, Json(asked): Json<Named>) -> Reply {
    host.stop(&asked.name).await?;
    Ok(fresh(Json(host.view())))
}

async fn revoke(State(host): State<Host>, Json(asked): Json<Named>) -> Reply {
    host.revoke(&asked.name).await?;
    Ok(fresh(Json(host.view())))
}

impl Host {
    /// Everything the page shows.
    fn view(&self) -> Value {
        let usage = locked(&self.shared.usage).clone();
        let apps: Vec<Value> = self
            .shared
            .store
            .all()
            .into_iter()
            .map(|kept| {
                let name = &kept.entry.name;
                let mut shown = json!({"name": name, "url": kept.entry.url, "origin": kept.entry.origin(), "usage": usage.get(name)});
                merge(&mut shown, self.state_of(name));
                if let Some(consent) = kept.consent {
                    shown["agreed"] = consent.place.shown();
                    shown["agreed_at"] = json!(consent.given_at);
                }
                shown
            })
            .collect();
        let models: Vec<Value> = self.shared.models.iter().map(|model| json!({"name": model.name, "kind": model.kind})).collect();
        json!({"apps": apps, "models": models})
    }

    /// The state of each app, for the agent's own status.
    pub(crate) fn conditions(&self) -> Vec<Value> {
        let shown = |kept: Kept| {
            let mut shown = json!({"name": kept.entry.name});
            merge(&mut shown, self.state_of(&kept.entry.name));
            shown
        };
        self.shared.store.all().into_iter().map(shown).collect()
    }

    fn state_of(&self, name: &str) -> Value {
        let mut state = json!(self.state(name));
        state["last_error"] = json!(self.shared.serve.condition(name).last_error);
        state
    }

    /// The message that the page sends to an app after the user consented.
    fn granted(&self, name: &str, token: &str) -> Value {
        let mut granted = json!({"decision": "granted", "token": token});
        merge(&mut granted, json!(self.state(name)));
        granted
    }
}

fn merge(one: &mut Value, other: Value) {
    if let (Some(one), Value::Object(other)) = (one.as_object_mut(), other) {
        one.extend(other);
    }
}

/// The response describes the current state and must not be cached.
fn fresh(answer: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], answer).into_response()
}
