//! Permission to read a mailbox, given by a person in their browser.
//!
//! The browser returns either to a server of ours, which finds the request for consent by its `state`, or to the command
//! that asked, on the same machine. Either way the code that it brings is worth nothing without the verifier, which never
//! leaves us.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gleaner_ingest::Channel;
use rand::RngCore as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::Type;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::error::{Error, Result};
use super::{Gmail, ledger, token};

/// The path that the browser returns to, under our public address.
pub const CALLBACK: &str = "/oauth/google/callback";
/// Read access to mail, and nothing else.
const SCOPE: &str = "https://www.googleapis.com/auth/gmail.readonly";
/// How long a person may take to consent.
const LIFETIME_MINUTES: i32 = 15;

/// A consent that was requested and not given yet.
#[derive(Clone)]
pub struct Consent {
    pub channel: Uuid,
    /// The URL that the person opens.
    pub url: String,
    /// Returned by the browser. It proves that the browser went there for us.
    pub state: String,
    redirect_uri: String,
    verifier: Zeroizing<String>,
}

impl fmt::Debug for Consent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consent").field("channel", &self.channel).field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

impl Gmail {
    /// Builds the request for consent, so that the browser returns to `redirect_uri`.
    pub fn ask_consent(&self, channel: &Channel, redirect_uri: &str) -> Result<Consent> {
        let client_id = channel.settings.text("client_id");
        let (Some(client_id), Some(_)) = (client_id, channel.settings.text("client_secret")) else {
            return Err(Error::Unconfigured(format!(
                "channel {} needs client_id and client_secret first: the OAuth client of your Google Cloud project",
                channel.name
            )));
        };
        let (state, verifier) = (random(), Zeroizing::new(random()));
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let parameters = [
            ("client_id", client_id),
            ("redirect_uri", redirect_uri),
            ("response_type", "code"),
            ("scope", SCOPE),
            // Both are needed, or Google issues no refresh token.
            ("access_type", "offline"),
            ("prompt", "consent"),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let url = reqwest::Url::parse_with_params(&self.google.auth_url, parameters)
            .map_err(|error| Error::Unconfigured(format!("GOOGLE_AUTH_URL: {error}")))?;
        Ok(Consent { channel: channel.id, url: url.into(), state, redirect_uri: redirect_uri.to_owned(), verifier })
    }

    /// Stores the consent, so that any server of ours can handle the browser's return.
    pub async fn expect(&self, consent: &Consent) -> Result<()> {
        let value = json!({"verifier": consent.verifier.as_str(), "redirect_uri": consent.redirect_uri});
        let client = self.pool.get().await?;
        client
            .query_typed(
                "insert into gleaner.ingest_memory (provider_id, key, value, expires_at)
                 values ($1, $2, $3, now() + make_interval(mins => $4))",
                &[
                    (&consent.channel, Type::UUID),
                    (&key(&consent.state), Type::TEXT),
                    (&value, Type::JSONB),
                    (&LIFETIME_MINUTES, Type::INT4),
                ],
            )
            .await?;
        Ok(())
    }

    /// Takes the consent with this `state`. It can be taken only once.
    pub async fn expected(&self, state: &str) -> Result<Option<Consent>> {
        let client = self.pool.get().await?;
        let row = client
            .query_typed_opt(
                "delete from gleaner.ingest_memory where key = $1 returning provider_id, value, expires_at > now()",
                &[(&key(state), Type::TEXT)],
            )
            .await?;
        let Some(row) = row.filter(|row| row.get(2)) else { return Ok(None) };
        let value: Value = row.get(1);
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let (redirect_uri, verifier) = (text("redirect_uri"), Zeroizing::new(text("verifier")));
        Ok(Some(Consent { channel: row.get(0), url: String::new(), state: state.to_owned(), redirect_uri, verifier }))
    }

    /// Exchanges the code for a grant, stores the grant encrypted, and requests a poll of the mailbox. Returns the channel.
    pub async fn grant(&self, consent: &Consent, code: &str) -> Result<Arc<Channel>> {
        let stored = |error: crate::channels::Error| Error::Store(error.to_string());
        let channel = Arc::new(self.channels.get(&consent.channel.to_string()).await.map_err(stored)?.channel);
        let setting = |name: &str| channel.settings.text(name).unwrap_or_default();
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", setting("client_id")),
            ("client_secret", setting("client_secret")),
            ("redirect_uri", &consent.redirect_uri),
            ("code_verifier", &consent.verifier),
        ];
        let answer = match token::exchange(&self.google, &self.http, &form).await {
            // Here the error is about the code: it is old, was used before, or belongs to another consent.
            Err(Error::Revoked(why)) => return Err(Error::Refused { status: 400, reason: why }),
            other => other?,
        };
        let grant = token::granted(&answer, None)?;
        self.tokens.keep(&channel, &grant).await.map_err(stored)?;
        let client = self.pool.get().await?;
        ledger::keep_ready(&**client, channel.id).await?;
        drop(client);
        self.request(channel.id).await?;
        Ok(channel)
    }
}

fn random() -> String {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Only the hash is stored, so that a reader of the table cannot use the state.
fn key(state: &str) -> String {
    format!("oauth:{}", hex::encode(Sha256::digest(state.as_bytes())))
}
