//! Access tokens: one refresh at a time per channel, at four fifths of a token's lifetime.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as Plain, PoisonError};

use gleaner_ingest::Channel;
use reqwest::Client;
use serde_json::Value;
use tokio::sync::Mutex;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::client::describe;
use super::error::{Error, Result};
use super::google::Google;
use super::grant::{Access, Grant};
use crate::channels::{Changes, Channels};

/// The tokens of every channel, in memory. Refreshed ones are also stored, encrypted, for the other servers.
#[derive(Debug)]
pub(super) struct Tokens {
    channels: Channels,
    /// The outer lock is only held to find the channel's own lock, which is held for as long as a refresh takes.
    held: Plain<HashMap<Uuid, Arc<Mutex<Option<Held>>>>>,
}

#[derive(Debug)]
struct Held {
    fingerprint: String,
    grant: Grant,
    /// Google has refused this grant for good; it is not used again.
    refused: Option<String>,
}

impl Tokens {
    pub(super) fn new(channels: Channels) -> Self {
        Self { channels, held: Plain::default() }
    }

    fn of(&self, channel: Uuid) -> Arc<Mutex<Option<Held>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).entry(channel).or_default().clone()
    }

    /// A token that is valid for a while. Callers that arrive during a refresh wait for it and use its result.
    pub(super) async fn access(&self, channel: &Channel, google: &Google, http: &Client) -> Result<Zeroizing<String>> {
        let configured = Grant::of(channel).ok_or_else(|| {
            Error::Unconfigured(format!("access to the mailbox is not granted; run `gleaner channels authorize {}`", channel.name))
        })?;
        let cell = self.of(channel.id);
        let mut held = cell.lock().await;
        let fingerprint = configured.fingerprint();
        // Another refresh token is another grant, and what is known of the old one does not apply to it. But Google may
        // also have replaced the token in a refresh of ours that this copy of the channel, read earlier, does not contain.
        let known = held.as_ref().is_some_and(|held| held.fingerprint == fingerprint || held.grant.fingerprint() == fingerprint);
        if !known {
            *held = Some(Held { fingerprint, grant: configured, refused: None });
        }
        let Some(held) = held.as_mut() else { unreachable!("filled above") };
        if let Some(why) = &held.refused {
            return Err(Error::Revoked(why.clone()));
        }
        if let Some(access) = held.grant.access.as_ref().filter(|access| access.is_fresh()) {
            return Ok(access.token.clone());
        }
        match refresh(channel, &held.grant, google, http).await {
            Ok(grant) => {
                held.grant = grant;
                if let Err(error) = self.keep(channel, &held.grant).await {
                    // The token works. That the next server must refresh again is no reason to stop.
                    tracing::warn!(channel = %channel.name, %error, "could not store the refreshed token");
                }
            }
            Err(Error::Revoked(why)) => {
                held.refused = Some(why.clone());
                return Err(Error::Revoked(why));
            }
            // Google fails temporarily, and the old token still has a fifth of its lifetime.
            Err(error) => match &held.grant.access {
                Some(access) if std::time::SystemTime::now() < access.expires_at => {
                    tracing::debug!(channel = %channel.name, %error, "could not refresh the token yet");
                }
                _ => return Err(error),
            },
        }
        match &held.grant.access {
            Some(access) => Ok(access.token.clone()),
            None => Err(Error::Refused { status: 200, reason: "it sent no access token".into() }),
        }
    }

    /// Stores the grant, encrypted.
    pub(super) async fn keep(&self, channel: &Channel, grant: &Grant) -> crate::channels::Result<()> {
        let changes = Changes { settings: vec![("oauth_token".into(), grant.to_setting())], ..Changes::default() };
        self.channels.set(&channel.id.to_string(), changes).await.map(drop)
    }

    /// Google no longer accepts this token, whatever its age.
    pub(super) async fn forget(&self, channel: &Channel, token: &str) {
        let cell = self.of(channel.id);
        let mut held = cell.lock().await;
        if let Some(held) = held.as_mut()
            && held.grant.access.as_ref().is_some_and(|access| access.token.as_str() == token)
        {
            held.grant.access = None;
        }
    }
}

async fn refresh(channel: &Channel, grant: &Grant, google: &Google, http: &Client) -> Result<Grant> {
    let setting = |name: &str| channel.settings.text(name).unwrap_or_default();
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", grant.refresh_token.as_str()),
        ("client_id", setting("client_id")),
        ("client_secret", setting("client_secret")),
    ];
    let answer = exchange(google, http, &form).await?;
    granted(&answer, Some(&grant.refresh_token))
}

/// The grant in the token endpoint's response. A refresh usually returns no new refresh token; then the old one stays.
pub(super) fn granted(answer: &Value, refresh_token: Option<&str>) -> Result<Grant> {
    let refused = |reason: &str| Error::Refused { status: 200, reason: reason.into() };
    let token = answer["access_token"].as_str().filter(|token| !token.is_empty()).ok_or_else(|| refused("it sent no access token"))?;
    let refresh_token = answer["refresh_token"].as_str().filter(|token| !token.is_empty()).or(refresh_token);
    let refresh_token =
        refresh_token.ok_or_else(|| refused("it sent no refresh token; remove our access at Google and authorise again"))?;
    let seconds = answer["expires_in"].as_u64().unwrap_or(3600);
    Ok(Grant { refresh_token: Zeroizing::new(refresh_token.to_owned()), access: Some(Access::granted(token, seconds)) })
}

/// Calls the token endpoint, with a few retries when Google fails temporarily.
pub(super) async fn exchange(google: &Google, http: &Client, form: &[(&str, &str)]) -> Result<Value> {
    let mut wait = google.patience.first;
    for tries in 1.. {
        let error = match http.post(&google.token_url).timeout(google.patience.call).form(form).send().await {
            Err(error) => Error::Unreachable(describe(error)),
            Ok(response) => {
                let status = response.status();
                let answer: Value = response.json().await.unwrap_or_default();
                let reason = answer["error"].as_str().unwrap_or("no reason given");
                match status.as_u16() {
                    200..=299 => return Ok(answer),
                    _ if reason == "invalid_grant" => {
                        let detail = answer["error_description"].as_str().unwrap_or("revoked or expired");
                        return Err(Error::Revoked(detail.chars().take(200).collect()));
                    }
                    429 | 500..=599 => Error::Unreachable(format!("the token endpoint answers {status}")),
                    status => return Err(Error::Refused { status, reason: reason.chars().take(200).collect() }),
                }
            }
        };
        if tries >= google.patience.tries.min(4) {
            return Err(error);
        }
        tokio::time::sleep(super::client::jittered(wait)).await;
        wait = (wait * 2).min(google.patience.longest);
    }
    unreachable!("the loop ends by returning")
}
