//! The signed-in user's session, kept in a file that only its owner can read.
//!
//! The file is replaced as a whole and never written in place. A process that renews the session holds the lock beside it and
//! reads the file again first: a refresh token works once, and another process may just have used it.

use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gleaner::{Error, Result};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::classify::{refused, unanswered};
use super::http::client;

/// The timeout for signing in, renewing and signing out.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// A sign-in, and the token that renews it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The server that the session is for.
    pub url: String,
    pub anon_key: String,
    pub access_token: String,
    pub refresh_token: String,
    /// Seconds since 1970, by the server's clock.
    pub expires_at: i64,
    pub user_id: String,
    pub email: String,
    /// Seconds since 1970, by our own clock; renewing does not change it.
    #[serde(default)]
    pub signed_in_at: i64,
}

/// Tokens must not appear in logs.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("url", &self.url).field("email", &self.email).finish_non_exhaustive()
    }
}

/// Where earlier versions kept the only session of a home; see [`super::sessions`].
pub(super) fn former_path(home: &Path) -> PathBuf {
    home.join("agent").join("session.json")
}

/// Signs in. Store the session with [`save`].
pub async fn login(url: &str, anon_key: &str, email: &str, password: &str) -> Result<Session> {
    let url = url.trim().trim_end_matches('/');
    let body = json!({"email": email.trim(), "password": password});
    token(&client()?, url, anon_key, "password", &body, "sign in").await
}

/// Ends the session, on the server and here. If the request does not reach the server, the session expires there by itself; the
/// file is deleted in any case. False when there was no session.
pub async fn logout(path: &Path) -> Result<bool> {
    let Some(session) = load(path)? else { return Ok(false) };
    // A process that is renewing the session right now would write the file again.
    let _lock = lock(path).await?;
    let session = load(path)?.unwrap_or(session);
    let response = client()?
        .post(format!("{}/auth/v1/logout?scope=local", session.url))
        .header("apikey", &session.anon_key)
        .bearer_auth(&session.access_token)
        .timeout(ANSWER_WITHIN)
        .send()
        .await;
    remove(path)?;
    if let Err(error) = response {
        tracing::warn!(error = %unanswered("sign out", &error), "the server does not know yet that the session has ended");
    }
    Ok(true)
}

/// Gets a new pair of tokens for the same sign-in.
pub(super) async fn refresh(client: &reqwest::Client, session: &Session) -> Result<Session> {
    let body = json!({"refresh_token": session.refresh_token});
    let renewed = token(client, &session.url, &session.anon_key, "refresh_token", &body, "renew the session").await?;
    Ok(Session { signed_in_at: session.signed_in_at, ..renewed })
}

async fn token(client: &reqwest::Client, url: &str, anon_key: &str, grant: &str, body: &Value, act: &str) -> Result<Session> {
    let sent = client
        .post(format!("{url}/auth/v1/token?grant_type={grant}"))
        .header("apikey", anon_key)
        .header("x-supabase-api-version", "2024-01-01")
        .timeout(ANSWER_WITHIN)
        .json(body)
        .send()
        .await;
    let response = sent.map_err(|error| unanswered(act, &error))?;
    let status = response.status().as_u16();
    let bytes = response.bytes().await.map_err(|error| unanswered(act, &error))?;
    let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if status != 200 {
        return Err(refused(act, status, &answer, false));
    }
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let read = || {
        let lasts = answer["expires_in"].as_i64()?;
        Some(Session {
            url: url.to_owned(),
            anon_key: anon_key.to_owned(),
            access_token: text("/access_token")?,
            refresh_token: text("/refresh_token")?,
            expires_at: answer["expires_at"].as_i64().unwrap_or_else(|| now() + lasts),
            user_id: text("/user/id")?,
            email: text("/user/email").unwrap_or_default(),
            signed_in_at: now(),
        })
    };
    read()
        .ok_or_else(|| Error::Other(format!("{act}: {url} answered, but not with a session; is it a Supabase project or `gleaner serve`?")))
}

pub(super) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

/// Reads the session from the file. None when there is no session.
pub fn load(path: &Path) -> Result<Option<Session>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path, &error)),
    };
    let mode = fs::metadata(path).map_err(|error| failed("look at", path, &error))?.permissions().mode();
    if mode & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "the session file was readable by others; its mode is corrected, sign in again if it may have been read");
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(|error| failed("protect", path, &error))?;
    }
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| Error::Other(format!("{} is no session ({error}); run `gleaner agent login`", path.display())))
}

/// Writes the session to the file. The file has either the new content or the old one, and only its owner can read it from the
/// first byte.
pub fn save(path: &Path, session: &Session) -> Result<()> {
    let folder = make_folder(path)?;
    let new = folder.join(format!(".session.{}", uuid::Uuid::new_v4().simple()));
    let text = serde_json::to_string_pretty(session).map_err(|error| Error::Other(format!("write the session: {error}")))?;
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&new);
        failed("write", path, &error)
    })
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path, &error)),
        _ => Ok(()),
    }
}

/// The directory of the session, created so that only its owner can read it.
pub(super) fn make_folder(path: &Path) -> Result<&Path> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed("make", folder, &error))?;
    Ok(folder)
}

/// Held while the session is changed. The kernel releases it when the process dies.
#[derive(Debug)]
pub(super) struct Lock {
    _held: Flock<File>,
}

pub(super) async fn lock(path: &Path) -> Result<Lock> {
    make_folder(path)?;
    let file = path.with_extension("lock");
    let mut opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&file)
        .map_err(|error| failed("open", &file, &error))?;
    // The process that holds it makes one request to the server, which has a timeout.
    let patience = tokio::time::Instant::now() + 2 * ANSWER_WITHIN;
    loop {
        match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Ok(Lock { _held: held }),
            Err((back, nix::errno::Errno::EWOULDBLOCK)) if tokio::time::Instant::now() < patience => opened = back,
            Err((_, errno)) => return Err(failed("lock", &file, &errno.into())),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn failed(act: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::Other(format!("{act} {}: {error}", path.display()))
}
