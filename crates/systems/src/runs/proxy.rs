//! The only way out of a browser: a proxy on this machine that asks [`Egress`] for every connection.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::egress::Egress;

const CONNECT: Duration = Duration::from_secs(10);
/// What the browser asks for by itself. Refused without a word: no page needs them.
const OF_THE_BROWSER: [&str; 8] = [
    "accounts.google.com",
    "android.clients.google.com",
    "clients2.google.com",
    "content-autofill.googleapis.com",
    "optimizationguide-pa.googleapis.com",
    "redirector.gvt1.com",
    "safebrowsingohttpgateway.googleapis.com",
    "update.googleapis.com",
];
/// The most refusals that are remembered of one step.
const MOST: usize = 20;

type Body = BoxBody<Bytes, hyper::Error>;

/// A listening proxy. Dropping it closes every connection.
#[derive(Debug)]
pub(super) struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    egress: RwLock<Arc<Egress>>,
    refused: Mutex<Vec<String>>,
}

impl Proxy {
    pub(super) async fn listen() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared { egress: RwLock::default(), refused: Mutex::default() });
        let task = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Ok(Self { port, shared, task })
    }

    /// From now on these rules hold.
    pub(super) fn set(&self, egress: Egress) {
        *self.shared.egress.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(egress);
    }

    /// What was refused since the last call, each once.
    pub(super) fn refused(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Connections end with this task.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let shared = shared.clone();
                connections.spawn(async move {
                    let tunnels = Arc::new(tokio::sync::Mutex::new(JoinSet::new()));
                    let service = service_fn(|request| serve(shared.clone(), tunnels.clone(), request));
                    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    let _ = connection.with_upgrades().await;
                    while tunnels.lock().await.join_next().await.is_some() {}
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(
    shared: Arc<Shared>,
    tunnels: Arc<tokio::sync::Mutex<JoinSet<()>>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    Ok(match connect(&shared, &request).await {
        Ok(stream) if request.method() == Method::CONNECT => {
            let mut stream = stream;
            tunnels.lock().await.spawn(async move {
                if let Ok(upgraded) = hyper::upgrade::on(request).await {
                    let _ = copy_bidirectional(&mut TokioIo::new(upgraded), &mut stream).await;
                }
            });
            Response::new(text(""))
        }
        Ok(stream) => forward(stream, request).await.unwrap_or_else(|error| answer(StatusCode::BAD_GATEWAY, error.to_string())),
        Err((status, why)) => answer(status, why),
    })
}

/// A connection to where the request goes, if it may go there.
async fn connect(shared: &Shared, request: &Request<Incoming>) -> Result<TcpStream, (StatusCode, String)> {
    let uri = request.uri();
    let port = match (uri.port_u16(), uri.scheme_str()) {
        (Some(port), _) => port,
        (None, Some("http")) => 80,
        _ => return Err((StatusCode::BAD_REQUEST, "only http and https are passed on".to_owned())),
    };
    let host = uri.host().unwrap_or_default();
    let egress = shared.egress.read().unwrap_or_else(PoisonError::into_inner).clone();
    let addresses = egress.resolve(host, port).await.map_err(|why| {
        let mut refused = shared.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MOST && !refused.contains(&why) && !OF_THE_BROWSER.contains(&host) {
            refused.push(why.clone());
        }
        (StatusCode::FORBIDDEN, why)
    })?;
    let connected = tokio::time::timeout(CONNECT, TcpStream::connect(&*addresses)).await;
    let unreachable = |why: String| (StatusCode::BAD_GATEWAY, format!("{host}:{port} does not answer: {why}"));
    connected.map_err(|_| unreachable("no connection in time".to_owned()))?.map_err(|error| unreachable(error.to_string()))
}

/// Sends a plain HTTP request on, in the form that servers expect.
async fn forward(stream: TcpStream, mut request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let uri = request.uri().clone();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    if let Some(host) = uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok()) {
        request.headers_mut().insert(HOST, host);
    }
    for header in ["proxy-connection", PROXY_AUTHORIZATION.as_str()] {
        request.headers_mut().remove(header);
    }
    // One request for each connection to the server.
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    *request.uri_mut() = uri.path_and_query().and_then(|path| path.as_str().parse().ok()).unwrap_or_else(|| Uri::from_static("/"));
    let mut response = sender.send_request(request).await?.map(|body| body.boxed());
    response.headers_mut().remove(CONNECTION);
    Ok(response)
}

fn answer(status: StatusCode, why: String) -> Response<Body> {
    let mut response = Response::new(text(why));
    *response.status_mut() = status;
    response
}

fn text(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed()
}
