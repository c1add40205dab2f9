//! The shared models.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::StreamExt as _;
use gleaner_agent::host::{Kind, Limits};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Stage, answered, listen, model, stage_with};

const ORIGIN: &str = "http://localhost:5173";

/// An endpoint whose response is chosen by the `user` field of the request.
async fn endpoint(State(go): State<Arc<Notify>>, Path(path): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    match asked["user"].as_str().unwrap_or_default() {
        "unauthorized" => (StatusCode::UNAUTHORIZED, "key ours is wrong").into_response(),
        "busy" => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "7")], Json(json!({"error": {"message": "slow down"}}))).into_response(),
        "odd" => (StatusCode::BAD_REQUEST, "<h1>what?</h1>").into_response(),
        "broken" => (StatusCode::INTERNAL_SERVER_ERROR, "stack trace").into_response(),
        "elsewhere" => (StatusCode::TEMPORARY_REDIRECT, [("location", "http://127.0.0.1:1/")]).into_response(),
        "silent" => std::future::pending().await,
        "slowly" => {
            let first = futures_util::stream::once(async { Ok::<_, std::io::Error>(Bytes::from("data: {\"n\":1}\n\n")) });
            let second = futures_util::stream::once(async move {
                go.notified().await;
                Ok(Bytes::from("data: {\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n"))
            });
            ([("content-type", "text/event-stream")], Body::from_stream(first.chain(second))).into_response()
        }
        _ => {
            let usage = json!({"prompt_tokens": 10, "completion_tokens": 4});
            Json(json!({"path": path, "authorization": authorization, "asked": asked, "usage": usage})).into_response()
        }
    }
}

struct Models {
    stage: Stage,
    token: String,
    go: Arc<Notify>,
}

async fn models(limits: Limits) -> Result<Models> {
    let go = Arc::new(Notify::new());
    let base = listen(Router::new().route("/v1/{*path}", post(endpoint)).with_state(go.clone())).await?;
    let away = model(Kind::Transcription, "http://127.0.0.1:1");
    let stage = stage_with(vec![model(Kind::Chat, &base), model(Kind::Embedding, &base), away], limits).await?;
    let token = stage.agreed("crm", ORIGIN).await?;
    Ok(Models { stage, token, go })
}

impl Models {
    fn post(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        let url = format!("{}/v1/{path}", self.stage.base);
        self.stage.http.post(url).bearer_auth(&self.token).header("origin", ORIGIN).json(body)
    }

    async fn chat(&self, body: Value) -> Result<(u16, Value)> {
        answered(self.post("chat/completions", &body)).await
    }
}

#[tokio::test]
async fn requests_reach_the_named_model_with_the_agents_key() -> Result<()> {
    let models = models(Limits::default()).await?;
    let (status, answer) = models.chat(json!({"model": "chat", "messages": [], "temperature": 0})).await?;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&answer["path"], &answer["authorization"]), (&json!("chat/completions"), &json!("Bearer ours")));
    assert_eq!(answer["asked"], json!({"model": "real", "messages": [], "temperature": 0}));
    for name in [json!("real"), json!("default"), json!(null)] {
        assert_eq!(models.chat(json!({"model": name})).await?.0, 200, "{name}");
    }
    let (_, answer) = answered(models.post("embeddings", &json!({"model": "embedding", "input": "x"}))).await?;
    assert_eq!(answer["path"], "embeddings");
    let (_, list) = answered(models.stage.http.get(format!("{}/v1/models", models.stage.base)).bearer_auth(&models.token)).await?;
    let names: Vec<_> = list["data"].as_array().into_iter().flatten().map(|model| model["id"].clone()).collect();
    assert_eq!(names, ["chat", "embedding", "transcription"]);
    let usage = models.stage.host.usage("crm");
    assert_eq!((usage.requests, usage.failed, usage.prompt_tokens, usage.completion_tokens), (5, 0, 50, 20));
    Ok(())
}

#[tokio::test]
async fn errors_have_openais_shape_and_do_not_reveal_the_backend() -> Result<()> {
    let models = models(Limits { json_bytes: 1024 * 1024, form_bytes: 1024 * 1024, ..Limits::default() }).await?;
    let shaped = |(status, answer): &(u16, Value), expected: u16, part: &str| {
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(*status == expected && message.contains(part), "{expected} {part}: {status} {answer}");
        assert!(!answer.to_string().contains("ours") && !answer.to_string().contains("127.0.0.1"), "{answer}");
    };
    shaped(&models.chat(json!({"user": "unauthorized"})).await?, 502, "refused the agent's key");
    shaped(&models.chat(json!({"user": "broken"})).await?, 502, "answered 500");
    shaped(&models.chat(json!({"user": "elsewhere"})).await?, 502, "answered 307");
    shaped(&models.chat(json!({"user": "silent"})).await?, 504, "did not answer within");
    shaped(&models.chat(json!({"user": "odd"})).await?, 400, "what?");
    let busy = models.post("chat/completions", &json!({"user": "busy"})).send().await?;
    assert_eq!((busy.status().as_u16(), busy.headers()["retry-after"].to_str()?), (429, "7"));
    shaped(&models.chat(json!({"model": "gpt-9"})).await?, 404, "gpt-9");
    shaped(&models.chat(json!({"model": "embedding"})).await?, 404, "embedding");
    shaped(&models.chat(json!({"model": 7})).await?, 400, "`model`");
    shaped(&models.chat(json!([])).await?, 400, "JSON object");
    shaped(&models.chat(json!({"messages": "x".repeat(1024 * 1024)})).await?, 413, "1 MiB");
    shaped(&answered(models.post("nothing/here", &json!({}))).await?, 404, "no such endpoint");
    shaped(&answered(models.post("audio/transcriptions", &json!({}))).await?, 400, "multipart");
    let form = |size: usize| {
        let file = reqwest::multipart::Part::bytes(vec![0; size]).file_name("a.wav");
        let url = format!("{}/v1/audio/transcriptions", models.stage.base);
        models.stage.http.post(url).bearer_auth(&models.token).multipart(reqwest::multipart::Form::new().part("file", file))
    };
    shaped(&answered(form(10)).await?, 502, "cannot be reached");
    shaped(&answered(form(2 * 1024 * 1024)).await?, 413, "1 MiB");
    assert_eq!(models.stage.host.usage("crm").failed, 7, "those that reached for a model");
    Ok(())
}

#[tokio::test]
async fn a_stream_is_passed_on_as_it_comes_and_its_tokens_are_counted() -> Result<()> {
    let models = models(Limits { at_once: 1, ..Limits::default() }).await?;
    let answer = models.post("chat/completions", &json!({"user": "slowly", "stream": true})).send().await?;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut chunks = answer.bytes_stream();
    let first = tokio::time::timeout(Duration::from_secs(5), chunks.next()).await?.context("a chunk")??;
    assert_eq!(&first[..], b"data: {\"n\":1}\n\n", "before the model has said the rest");
    // While it runs it counts as one of the app's concurrent requests.
    assert_eq!(models.chat(json!({})).await?.0, 429);
    models.go.notify_one();
    let mut rest = Vec::new();
    while let Some(chunk) = chunks.next().await {
        rest.extend_from_slice(&chunk?);
    }
    assert!(rest.ends_with(b"data: [DONE]\n\n"));
    let usage = models.stage.host.usage("crm");
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (2, 3));
    drop(chunks);
    assert_eq!(models.chat(json!({})).await?.0, 200);
    // A model that stalls in the middle of a stream does not occupy the app's slot for ever.
    let answer = models.post("chat/completions", &json!({"user": "slowly"})).send().await?;
    assert!(answer.bytes().await.is_err());
    assert_eq!(models.chat(json!({})).await?.0, 200);
    Ok(())
}

#[tokio::test]
async fn only_the_app_itself_gets_in_and_only_its_origin_may_read() -> Result<()> {
    let models = models(Limits::default()).await?;
    let other = models.stage.agreed("other", "https://other.example").await?;
    let url = format!("{}/v1/models", models.stage.base);
    let get = async |token: &str, origin: Option<&str>, host: Option<&str>| {
        let mut request = models.stage.http.get(&url).bearer_auth(token);
        for (name, value) in [("origin", origin), ("host", host)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let answer = request.send().await?;
        let may_read = answer.headers().get("access-control-allow-origin").and_then(|value| value.to_str().ok()).map(str::to_owned);
        anyhow::Ok((answer.status().as_u16(), may_read))
    };
    let ours = Some(ORIGIN.to_owned());
    assert_eq!(get(&models.token, Some(ORIGIN), None).await?, (200, ours.clone()));
    assert_eq!(get(&models.token, None, None).await?, (200, None), "a program of the app's, not a page");
    assert_eq!(get(&other, Some(ORIGIN), None).await?, (403, ours.clone()));
    assert_eq!(get(&models.token, Some("https://evil.example"), None).await?, (403, None));
    assert_eq!(get(&models.token, Some("null"), None).await?, (403, None));
    assert_eq!(get("gleaner_app_guess", Some(ORIGIN), None).await?, (401, ours));
    assert_eq!(get(&models.token, None, Some("rebound.example")).await?.0, 421);
    assert_eq!(models.stage.http.get(&url).send().await?.status(), 401);

    let preflight = async |origin: &str| {
        let request = models.stage.http.request(reqwest::Method::OPTIONS, &url).header("origin", origin);
        let answer = request.header("access-control-request-headers", "authorization, x-stainless-os").send().await?;
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        anyhow::Ok((answer.status().as_u16(), header("access-control-allow-origin"), header("access-control-allow-headers")))
    };
    assert_eq!(preflight(ORIGIN).await?, (204, ORIGIN.to_owned(), "authorization, x-stainless-os".to_owned()));
    assert_eq!(preflight("https://evil.example").await?, (403, String::new(), String::new()));
    models.stage.page("revoke", json!({"name": "crm"})).await?;
    assert_eq!(get(&models.token, Some(ORIGIN), None).await?, (401, None));
    assert_eq!(preflight(ORIGIN).await?.0, 403);
    Ok(())
}
