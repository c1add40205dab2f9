//! A proxy between an agent and the real server that can misbehave like a gateway or a bad network.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, HOST, RETRY_AFTER, TRANSFER_ENCODING};
use tokio::net::TcpListener;

/// What happens to the next request for a path, instead of forwarding it.
#[derive(Debug, Clone)]
pub(crate) enum Trick {
    /// The proxy answers it, and it never reaches the server.
    Answer(u16, Option<&'static str>),
    /// It reaches the server, and the response is lost.
    Lose,
}

#[derive(Debug, Clone)]
pub(crate) struct Front {
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    http: reqwest::Client,
    tricks: Mutex<Vec<(String, VecDeque<Trick>)>>,
    /// Answered with 404, as by a gateway that has no such route.
    closed: Mutex<Option<String>>,
    counts: Mutex<HashMap<String, usize>>,
}

impl Front {
    pub(crate) async fn before(server: &str) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            http: reqwest::Client::new(),
            tricks: Mutex::default(),
            closed: Mutex::default(),
            counts: Mutex::default(),
        });
        let app = Router::new().fallback(pass).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { url, shared })
    }

    /// Applies these tricks to the next requests whose path ends like this, one each.
    pub(crate) fn play(&self, path: &str, tricks: impl IntoIterator<Item = Trick>) {
        self.shared.tricks.lock().unwrap().push((path.to_owned(), tricks.into_iter().collect()));
    }

    /// Answers 404 for everything under this path.
    pub(crate) fn close(&self, prefix: &str) {
        *self.shared.closed.lock().unwrap() = Some(prefix.to_owned());
    }

    /// How many requests there were for the path.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.shared.counts.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

async fn pass(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    *shared.counts.lock().unwrap().entry(path.clone()).or_default() += 1;
    if shared.closed.lock().unwrap().as_ref().is_some_and(|prefix| path.starts_with(prefix)) {
        return (StatusCode::NOT_FOUND, r#"{"message":"no Route matched with those values"}"#).into_response();
    }
    let trick = {
        let mut tricks = shared.tricks.lock().unwrap();
        tricks.iter_mut().filter(|(end, _)| path.ends_with(end.as_str())).find_map(|(_, tricks)| tricks.pop_front())
    };
    if let Some(Trick::Answer(status, retry_after)) = trick {
        let mut response = (StatusCode::from_u16(status).unwrap(), "<html>somebody in between</html>").into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.parse().unwrap());
        }
        return response;
    }
    let (mut parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let target = parts.uri.path_and_query().map_or("/", |whole| whole.as_str());
    for name in [HOST, CONTENT_LENGTH, TRANSFER_ENCODING] {
        parts.headers.remove(name);
    }
    let sent = shared.http.request(parts.method, format!("{}{target}", shared.server)).headers(parts.headers).body(body).send().await;
    let Ok(answer) = sent else { return StatusCode::BAD_GATEWAY.into_response() };
    if matches!(trick, Some(Trick::Lose)) {
        let _ = answer.bytes().await;
        // The connection breaks in the middle of the response.
        let cut = stream::iter([Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("cut"))]);
        return Response::builder().header(CONTENT_LENGTH, 1000).body(Body::from_stream(cut)).unwrap();
    }
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers().iter().filter(|(name, _)| *name != TRANSFER_ENCODING) {
        response = response.header(name, value);
    }
    response.body(Body::from(answer.bytes().await.unwrap_or_default())).unwrap()
}
