//! The apps of the page.

use std::net::IpAddr;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::Error;
use super::asked::Place;

/// Names are shown to people, and are part of our own requests.
const LONGEST_NAME: usize = 64;
const LONGEST_URL: usize = 2048;

/// An app that the user has added to the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    /// The URL that its frame shows.
    pub url: String,
}

/// An app to be served: its name on the page, and where its work is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    pub name: String,
    pub place: Place,
}

impl Entry {
    /// Checks both values. `own` is our own authority, if known: the agent's own page cannot be an app.
    pub fn new(name: &str, url: &str, own: Option<&str>) -> Result<Self, Error> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(Error::Invalid(format!("a name has 1 to {LONGEST_NAME} letters")));
        }
        let url = web_address(url)?;
        let is_own = own.and_then(|own| Url::parse(&format!("http://{own}")).ok()).is_some_and(|own| {
            // Every name of this machine reaches us on our port.
            own.port_or_known_default() == url.port_or_known_default() && is_loopback(&url)
        });
        if is_own {
            return Err(Error::Invalid("that is the agent's own address; an app has one of its own".into()));
        }
        Ok(Self { name: name.to_owned(), url: url.into() })
    }

    /// In the format that browsers use in `event.origin` and `Origin`.
    pub fn origin(&self) -> String {
        Url::parse(&self.url).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
    }
}

/// A URL whose traffic no third party can change: encrypted, or on this machine.
pub(super) fn web_address(text: &str) -> Result<Url, Error> {
    let invalid = |why: &str| Err(Error::Invalid(why.to_owned()));
    if text.len() > LONGEST_URL {
        return invalid("the URL is too long");
    }
    let Ok(url) = Url::parse(text.trim()) else {
        return invalid("that is not a URL; it looks like http://localhost:5173 or https://crm.example.com");
    };
    if !url.username().is_empty() || url.password().is_some() {
        return invalid("a URL with a password in it would show the password on the page; leave it out");
    }
    match url.scheme() {
        "https" if url.host().is_some() => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => invalid("http is for this machine only, because others on the network could change what it carries; use https"),
        _ => invalid("a URL begins with https://, or with http:// and is on this machine"),
    }
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.ends_with(".localhost") || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests;
