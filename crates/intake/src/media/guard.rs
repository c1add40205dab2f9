//! Fetches from external addresses without giving clients access to internal ones.
//!
//! A name is resolved once, by us, so the address that was checked is the one that is connected to. Every hop of a redirect
//! goes through the same check, and credentials are sent to the first hop only.

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use gleaner_http::address::{canonical, is_public};
use http::HeaderValue;
use http::header::{AUTHORIZATION, LOCATION};
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Response, Url};

use super::Failure;

/// The most redirects to follow. Providers need one, or two when a CDN moves.
const REDIRECTS: usize = 4;

/// Fetches from public addresses, from private networks that the operator permits, and from below the base URLs that the
/// operator has configured for a provider.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    /// Resolves names to permitted addresses only.
    client: Client,
    /// Resolves all names. Only for URLs below one of `bases`.
    configured: Client,
    permitted: Permitted,
    bases: Vec<Url>,
}

/// The private networks that the operator permits.
#[derive(Debug, Clone, Default)]
struct Permitted(Vec<IpNet>);

/// Why an address is refused. Carried inside the HTTP client's own errors.
#[derive(Debug, thiserror::Error)]
#[error("{host} is not on the public Internet")]
struct Private {
    host: String,
}

impl Guard {
    /// `networks` and what is below `bases` may be private.
    pub(super) fn new(networks: Vec<IpNet>, bases: Vec<Url>, idle: Duration) -> Result<Self, reqwest::Error> {
        let permitted = Permitted(networks);
        let client = || {
            Client::builder()
                // A proxy would resolve names itself, and could reach internal addresses.
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .referer(false)
                .connect_timeout(Duration::from_secs(10))
                .read_timeout(idle)
                .pool_max_idle_per_host(2)
                .user_agent(concat!("gleaner/", env!("CARGO_PKG_VERSION")))
        };
        let guarded = client().dns_resolver(Resolver(permitted.clone())).build()?;
        Ok(Self { client: guarded, configured: client().build()?, permitted, bases })
    }

    /// Follows redirects to the final response. `authorization` is sent to the first hop only.
    pub(super) async fn get(&self, url: Url, authorization: Option<HeaderValue>) -> Result<Response, Failure> {
        let mut url = url;
        let mut authorization = authorization;
        for _ in 0..=REDIRECTS {
            let mut request = self.check(&url)?.get(url.clone());
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

    /// The checks before a name is resolved, and the client for this URL. An address written as a number never reaches the
    /// resolver.
    fn check(&self, url: &Url) -> Result<&Client, Failure> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Failure::Refused(format!("{}: is no way to fetch a file", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Failure::Refused("its address has a password in it".into()));
        }
        if self.bases.iter().any(|base| is_below(base, url)) {
            return Ok(&self.configured);
        }
        let host = url.host_str().ok_or_else(|| Failure::Refused("its address has no host".into()))?;
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match literal {
            Ok(address) if !self.permitted.allows(address) => Err(Failure::Refused(Private { host: host.to_owned() }.to_string())),
            _ => Ok(&self.client),
        }
    }
}

/// Whether the URL has the scheme, host and port of `base`, and a path below its path.
pub(super) fn is_below(base: &Url, url: &Url) -> bool {
    let folder = base.path().trim_end_matches('/');
    base.origin() == url.origin() && url.path().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

impl Permitted {
    fn allows(&self, address: IpAddr) -> bool {
        let address = canonical(address);
        is_public(address) || self.0.iter().any(|network| network.contains(&address))
    }
}

struct Resolver(Permitted);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let permitted = self.0.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            // One private address among public ones is no accident, so the name is refused.
            if found.iter().any(|address| !permitted.allows(address.ip())) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_base_covers_its_host_port_and_path_alone() {
        let base = Url::parse("http://relay.internal:8080/twilio/").unwrap();
        let below = |url: &str| is_below(&base, &Url::parse(url).unwrap());
        assert!(below("http://relay.internal:8080/twilio/2010-04-01/x"));
        for outside in [
            "http://relay.internal/twilio/x",
            "https://relay.internal:8080/twilio/x",
            "http://relay.internal:8080/admin",
            "http://relay.internal:8080/twilio-admin/x",
            "http://relay.internal:8080/twilio/../admin",
            "http://relay.internal:8080/twilio/%2e%2e/admin",
            "http://other.internal:8080/twilio/x",
        ] {
            assert!(!below(outside), "{outside}");
        }
        let root = Url::parse("http://relay.internal").unwrap();
        assert!(is_below(&root, &Url::parse("http://relay.internal/x").unwrap()));
    }
}
