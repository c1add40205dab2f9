//! Whether a request comes from Postmark: by user and password, and by address.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use crate::crypt::{any_same, any_same_secret, basic_credentials, sha256};
use crate::refusal::Why;
use crate::{Channel, Request};

/// The source addresses of webhooks, as published at postmarkapp.com/support/article/800-ips-for-firewalls#webhooks.
const PUBLISHED: [[u8; 4]; 4] = [[3, 134, 147, 250], [50, 31, 156, 6], [50, 31, 156, 77], [18, 217, 206, 57]];

/// User and password, required as soon as the channel has them. If the password is missing or empty, every request is refused.
pub(super) fn verify_credentials(channel: &Channel, request: &Request<'_>) -> Result<(), Why> {
    if channel.settings.get("basic_auth").is_none_or(Value::is_null) {
        return Ok(());
    }
    let passwords = channel.settings.both("basic_auth.password");
    if passwords.is_empty() {
        return Err(Why::Unconfigured);
    }
    // A URL may have a password and no user.
    let current = channel.settings.text("basic_auth.username").unwrap_or_default();
    let users = [current, channel.settings.text("basic_auth.username_previous").unwrap_or(current)];

    let header = request.header("authorization").ok_or(Why::Unsigned)?;
    let (user, password) = basic_credentials(header).ok_or(Why::Mismatch)?;
    // Both are always compared, by hash, so that neither time nor length reveals which was right.
    let is_user = any_same(&sha256(&user), users.map(|user| sha256(user.as_bytes())));
    let is_password = any_same_secret(&password, passwords);
    if is_user & is_password { Ok(()) } else { Err(Why::Mismatch) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Enforce,
    Monitor,
    Off,
}

impl Mode {
    /// Unless configured otherwise, the address decides where it can be trusted. The address of a private network is that of a
    /// proxy that is not configured here, and refusing mail because of it would lose all mail.
    fn of(channel: &Channel, client: Option<IpAddr>) -> Self {
        match channel.settings.text("ip_mode") {
            Some("off") => Self::Off,
            Some("monitor") => Self::Monitor,
            // An unknown value was meant to protect the channel.
            Some(_) => Self::Enforce,
            None if client.is_some_and(is_public) => Self::Enforce,
            None => Self::Monitor,
        }
    }
}

/// Checks where the request comes from. Returns a warning when that is doubtful and the channel does not enforce it.
pub(super) fn verify_address(channel: &Channel, request: &Request<'_>) -> Result<Option<String>, Why> {
    let client = request.client.map(|client| client.to_canonical());
    let mode = Mode::of(channel, client);
    if mode == Mode::Off || client.is_some_and(|client| networks(channel).iter().any(|network| network.contains(&client))) {
        return Ok(None);
    }
    match (mode, client) {
        (Mode::Enforce, _) => Err(Why::Address),
        (_, Some(client)) => Ok(Some(format!("came from {client}, which is not one of Postmark's addresses"))),
        (_, None) => Ok(Some("the sender's address is not known, so it was not compared; set TRUSTED_PROXIES".to_owned())),
    }
}

/// What is wrong with the settings for credentials and addresses.
pub(super) fn check(channel: &Channel) -> Vec<String> {
    let mut wrong = Vec::new();
    let settings = &channel.settings;
    if settings.get("basic_auth").is_some_and(|both| !both.is_null()) && settings.text("basic_auth.password").is_none() {
        wrong.push("basic_auth has no password; write basic_auth.password or leave basic_auth out".to_owned());
    }
    if settings.text("basic_auth.username").is_some_and(|user| user.contains(':')) {
        wrong.push("basic_auth.username contains a colon, which HTTP does not allow".to_owned());
    }
    if settings.get("ip_mode").is_some_and(|mode| !matches!(mode.as_str(), Some("enforce" | "monitor" | "off"))) {
        wrong.push("ip_mode is enforce, monitor or off".to_owned());
    }
    for entry in entries(channel).filter(|entry| network(entry).is_none()) {
        wrong.push(format!("ip_allow: {entry} is neither an address nor a network such as 10.0.0.0/8"));
    }
    wrong
}

fn networks(channel: &Channel) -> Vec<IpNet> {
    let mut own = entries(channel).peekable();
    if own.peek().is_none() {
        return PUBLISHED.iter().map(|address| IpNet::from(IpAddr::from(*address))).collect();
    }
    own.filter_map(network).collect()
}

/// The entries of `ip_allow`, which is a list or a text.
fn entries(channel: &Channel) -> impl Iterator<Item = &str> {
    let listed = match channel.settings.get("ip_allow") {
        Some(Value::Array(values)) => values.iter().map(|value| value.as_str().unwrap_or("?")).collect(),
        Some(Value::String(text)) => vec![text.as_str()],
        _ => Vec::new(),
    };
    listed.into_iter().flat_map(|text| text.split(|c: char| c == ',' || c.is_whitespace())).filter(|entry| !entry.is_empty())
}

fn network(entry: &str) -> Option<IpNet> {
    entry.parse().ok().or_else(|| entry.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())))
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            // 100.64.0.0/10 is used by carriers and container networks behind their own NAT.
            let is_shared = v4.octets()[0] == 100 && (64..128).contains(&v4.octets()[1]);
            !(v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified() || is_shared)
        }
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_unspecified()),
    }
}
