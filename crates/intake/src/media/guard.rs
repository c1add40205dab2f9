//! Fetches from external addresses without giving clients access to internal ones.
//!
//! A name is resolved once, by us, so the address that was checked is the one that is connected to. Every hop of a redirect
//! goes through the same check, and credentials are sent to the first hop only.

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::{AUTHORIZATION, LOCATION};
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Response, Url};

use super::Failure;
use super::address::{canonical, is_public};

/// The most redirects to follow. Providers need one, or two when a CDN moves.
const REDIRECTS: usize = 4;

/// A client that reaches public addresses only.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    client: Client,
    permitted: Arc<Permitted>,
}

/// The exceptions: networks and hosts that the operator has configured.
#[derive(Debug, Default)]
struct Permitted {
    networks: Vec<IpNet>,
    hosts: Vec<String>,
}

/// Why an address is refused. Carried inside the HTTP client's own errors.
#[derive(Debug, thiserror::Error)]
#[error("{host} is not on the public Internet")]
struct Private {
    host: String,
}

impl Guard {
    /// `networks` and `hosts` may be private.
    pub(super) fn new(networks: Vec<IpNet>, hosts: Vec<String>, idle: Duration) -> Result<Self, reqwest::Error> {
        let permitted = Arc::new(Permitted { networks, hosts });
        let client = Client::builder()
            // A proxy would resolve names itself, and could reach internal addresses.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(idle)
            .pool_max_idle_per_host(2)
            .user_agent(concat!("gleaner/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Resolver(permitted.clone()))
            .build()?;
        Ok(Self { client, permitted })
    }

    /// Follows redirects to the final response. `authorization` is sent to the first hop only.
    pub(super) async fn get(&self, url: Url, authorization: Option<HeaderValue>) -> Result<Response, Failure> {
        let mut url = url;
        let mut authorization = authorization;
        for _ in 0..=REDIRECTS {
            self.check(&url)?;
            let mut request = self.client.get(url.clone());
            if let Some(mut value) = authorization.take() {
                value.set_sensitive(true);
                request = request.header(AUTHORIZATION, value);
            }
            let response = request.send().await.map_err(failed)?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let next = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let next = next.and_then(|next| url.join(next).ok()).ok_or(Failure::Provider("it redirects to nowhere".into()))?;
            if url.scheme() == "https" && next.scheme() != "https" {
                return Err(Failure::Refused("it redirects from https to http".into()));
            }
            url = next;
        }
        Err(Failure::Provider("it redirects without end".into()))
    }

    /// The checks before a name is resolved. An address written as a number never reaches the resolver.
    fn check(&self, url: &Url) -> Result<(), Failure> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Failure::Refused(format!("{}: is no way to fetch a file", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Failure::Refused("its address has a password in it".into()));
        }
        let host = url.host_str().ok_or_else(|| Failure::Refused("its address has no host".into()))?;
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match literal {
            Ok(address) if !self.permitted.allows(host, address) => Err(Failure::Refused(Private { host: host.to_owned() }.to_string())),
            _ => Ok(()),
        }
    }
}

impl Permitted {
    fn allows(&self, host: &str, address: IpAddr) -> bool {
        let address = canonical(address);
        is_public(address)
            || self.networks.iter().any(|network| network.contains(&address))
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }
}

struct Resolver(Arc<Permitted>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let permitted = self.0.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            // One private address among public ones is no accident, so the name is refused.
            if found.iter().any(|address| !permitted.allows(&host, address.ip())) {
                return Err(Private { host }.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// What went wrong, without the URL, because it may contain a token.
fn failed(error: reqwest::Error) -> Failure {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(private) = inner.downcast_ref::<Private>() {
            return Failure::Refused(private.to_string());
        }
        source = inner.source();
    }
    let what = if error.is_timeout() {
        "it did not answer in time"
    } else if error.is_connect() {
        "it could not be reached"
    } else {
        "the connection to it failed"
    };
    tracing::debug!(error = %error.without_url(), "media could not be fetched");
    Failure::Provider(what.into())
}
