//! A local provider: files, redirects, and responses that stall. Records which credentials each request had.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

pub(super) const RECORDING: &str = "RIFF....WAVEfmt and so on";

/// The path, and the `Authorization` header if any.
type Recorded = (String, Option<String>);

#[derive(Clone)]
pub(super) struct LocalProvider {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Recorded>>>,
    /// The target of the redirect at `/moved`.
    pub target: Arc<Mutex<String>>,
}

impl LocalProvider {
    pub(super) async fn start() -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let provider = Self { address: listener.local_addr()?, asked: Arc::default(), target: Arc::default() };
        let router = Router::new().fallback(answer).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(provider)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn asked(&self) -> Vec<Recorded> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn redirect_to(&self, url: &str) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = url.to_owned();
    }
}

async fn answer(State(provider): State<LocalProvider>, request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("", |path| path.as_str()).to_owned();
    let authorization = request.headers().get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
    provider.asked.lock().unwrap_or_else(PoisonError::into_inner).push((path.clone(), authorization.clone()));
    let target = provider.target.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let wav = [("content-type", "audio/x-wav")];
    match path.as_str() {
        "/recording" | "/2010-04-01/Accounts/AC1/Recordings/RE1" => (wav, RECORDING).into_response(),
        "/locked" if authorization.is_none() => StatusCode::UNAUTHORIZED.into_response(),
        "/locked" => (wav, RECORDING).into_response(),
        "/gone" => StatusCode::NOT_FOUND.into_response(),
        "/broken" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "/moved" | "/2010-04-01/Accounts/AC1/Recordings/REmoved" => {
            (StatusCode::TEMPORARY_REDIRECT, [("location", target)]).into_response()
        }
        "/round" => (StatusCode::FOUND, [("location", "/round")]).into_response(),
        "/nowhere" => StatusCode::FOUND.into_response(),
        "/large" => vec![b'x'; 5000].into_response(),
        // No length is sent, so only counting the bytes shows the size.
        "/endless" => {
            let pieces = stream::iter((0..100).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 100]))));
            Body::from_stream(pieces).into_response()
        }
        "/chunked" => {
            Body::from_stream(stream::iter(["a", "b"].map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())))))
                .into_response()
        }
        "/silent" => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            StatusCode::OK.into_response()
        }
        "/page" => ([("content-type", "text/html")], "<script>steal()</script>").into_response(),
        "/777" => axum::Json(json!({"url": provider.url("/whatsapp-file"), "mime_type": "audio/ogg"})).into_response(),
        "/778" => axum::Json(json!({"url": target, "mime_type": "audio/ogg"})).into_response(),
        "/whatsapp-file" if authorization.as_deref() == Some("Bearer wa-token") => RECORDING.into_response(),
        "/botbot-token/getFile?file_id=F1" => axum::Json(json!({"ok": true, "result": {"file_path": "voice/file_1.oga"}})).into_response(),
        "/botbot-token/getFile?file_id=F2" => axum::Json(json!({"ok": true, "result": {"file_path": "../../secret"}})).into_response(),
        "/file/botbot-token/voice/file_1.oga" => RECORDING.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
