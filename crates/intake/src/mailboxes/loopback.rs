//! The browser returns to this machine: for installations without a public address.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::authorize::Consent;

/// A listener that a browser on the same machine can return to. Google allows any port for such an address.
#[derive(Debug)]
pub struct Loopback {
    listener: TcpListener,
    address: SocketAddr,
}

/// The result of waiting for the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Back {
    Code(String),
    /// The person refused.
    Denied(String),
    /// The browser did not return in time.
    Never,
}

#[derive(Debug, Clone)]
struct Waiting {
    state: String,
    back: mpsc::Sender<Back>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Returned {
    state: String,
    code: Option<String>,
    error: Option<String>,
}

impl Loopback {
    /// Listens on this machine only. Port 0 means any port.
    pub async fn bind(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub fn redirect_uri(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits for the browser that was sent with this consent. Other requests are refused.
    pub async fn wait(self, consent: &Consent, within: Duration) -> Back {
        let (back, mut came) = mpsc::channel(1);
        let waiting = Waiting { state: consent.state.clone(), back };
        let router = Router::new().route("/", get(returned)).with_state(waiting);
        let serving = axum::serve(self.listener, router).into_future();
        let came = tokio::select! {
            came = tokio::time::timeout(within, came.recv()) => came.ok().flatten().unwrap_or(Back::Never),
            _ = serving => Back::Never,
        };
        // The response to the browser is being sent; give it time to leave.
        tokio::time::sleep(Duration::from_millis(50)).await;
        came
    }
}

async fn returned(State(waiting): State<Waiting>, Query(returned): Query<Returned>) -> (StatusCode, &'static str) {
    if returned.state != waiting.state {
        return (StatusCode::BAD_REQUEST, "This consent was not asked for here.\n");
    }
    let (back, text) = match (returned.code, returned.error) {
        (Some(code), None) => (Back::Code(code), "Thank you. You may close this window and return to the terminal.\n"),
        (_, error) => {
            (Back::Denied(error.unwrap_or_else(|| "no reason given".into())), "Access was not granted, and nothing was changed.\n")
        }
    };
    let _ = waiting.back.try_send(back);
    (StatusCode::OK, text)
}
