//! Where pages may go: the recording's own sites, and nothing private unless the machine allows it.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use gleaner_http::address::{canonical, is_public};
use ipnet::IpNet;
use reqwest::Url;

/// The rules of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Egress {
    sites: BTreeSet<Site>,
    /// Any public site.
    any: bool,
    allow: Vec<IpNet>,
}

/// A host with its subdomains; with a port, that one alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    host: String,
    port: Option<u16>,
}

impl Egress {
    pub(super) fn new(allow: Vec<IpNet>) -> Self {
        Self { allow, ..Self::default() }
    }

    /// The site of an address that the recording opens.
    pub(super) fn open(&mut self, url: &str) -> Result<(), String> {
        let url = Url::parse(url).map_err(|error| format!("{url:?} is no address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("only http and https are opened, not {}:", url.scheme()));
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        // Sites send their pages from one of the usual ports to the other.
        self.sites.insert(Site { host, port: url.port() });
        Ok(())
    }

    /// A site that the recording names besides: `cdn.example.com`, `example.com:8080`, or `*`.
    pub(super) fn also(&mut self, site: &str) {
        if site == "*" {
            self.any = true;
        } else if let Ok(url) = Url::parse(&format!("http://{site}")) {
            let port = site.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            self.sites.insert(Site { host: url.host_str().unwrap_or_default().to_owned(), port });
        }
    }

    /// The addresses to connect to, or why there are none. The name is resolved here, so the address that is checked is the one that
    /// is connected to.
    pub(super) async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if !self.any && !self.sites.iter().any(|site| site.covers(bare, host, port)) {
            return Err(format!("{host}:{port} is none of the recording's sites; list it in \"sites\" if the page needs it"));
        }
        let found = tokio::net::lookup_host((bare, port)).await.map_err(|error| format!("{host} cannot be resolved: {error}"))?;
        let (may, not): (Vec<SocketAddr>, Vec<SocketAddr>) = found.partition(|address| self.may(address.ip()));
        match (may.is_empty(), not.first()) {
            (false, _) => Ok(may),
            (true, Some(address)) => Err(format!(
                "{host} is {}, a private address; an agent with GLEANER_RUN_ALLOW={} may reach it",
                address.ip(),
                canonical(address.ip())
            )),
            (true, None) => Err(format!("{host} has no address")),
        }
    }

    fn may(&self, address: IpAddr) -> bool {
        let address = canonical(address);
        is_public(address) || self.allow.iter().any(|network| network.contains(&address))
    }
}

impl Site {
    fn covers(&self, bare: &str, host: &str, port: u16) -> bool {
        let name = self.host.trim_start_matches('[').trim_end_matches(']');
        let same = bare.eq_ignore_ascii_case(name) || host.to_lowercase().ends_with(&format!(".{name}")) && name.parse::<IpAddr>().is_err();
        same && self.port.map_or(port == 80 || port == 443, |own| own == port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pages_reach_their_own_sites_and_nothing_private_unless_allowed() {
        let mut egress = Egress::new(Vec::new());
        egress.open("http://127.0.0.1:8080/x").expect("an address");
        egress.open("https://8.8.8.8/").expect("an address");
        egress.also("1.1.1.1:8443");
        assert!(egress.resolve("8.8.8.8", 443).await.is_ok() && egress.resolve("8.8.8.8", 80).await.is_ok());
        assert!(egress.resolve("1.1.1.1", 8443).await.is_ok() && egress.resolve("1.1.1.1", 443).await.is_err());
        assert!(egress.resolve("9.9.9.9", 443).await.expect_err("not its site").contains("sites"));
        assert!(egress.resolve("127.0.0.1", 8080).await.expect_err("private").contains("GLEANER_RUN_ALLOW=127.0.0.1"));
        egress.allow.push("127.0.0.0/8".parse().expect("a network"));
        assert!(egress.resolve("127.0.0.1", 8080).await.is_ok());
        assert!(egress.resolve("127.0.0.1", 8081).await.is_err(), "another port is another site");
        assert!(egress.open("file:///etc/passwd").expect_err("no site").contains("http"));
    }

    #[test]
    fn a_site_covers_its_subdomains_and_no_lookalike() {
        let site = Site { host: "shop.example".to_owned(), port: None };
        let covers = |host: &str| site.covers(host, host, 443);
        assert!(covers("shop.example") && covers("www.Shop.Example") && !covers("evilshop.example") && !covers("shop.example.evil"));
    }

    #[tokio::test]
    async fn any_public_site_is_still_no_private_one() {
        let mut egress = Egress::new(Vec::new());
        egress.also("*");
        for private in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "[::ffff:127.0.0.1]", "100.64.0.1"] {
            assert!(egress.resolve(private, 80).await.is_err(), "{private}");
        }
        assert!(egress.resolve("8.8.8.8", 443).await.is_ok());
    }
}
