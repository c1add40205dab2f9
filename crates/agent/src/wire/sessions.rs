//! The sessions of a home: one file for each project that a user signed in to.

use std::fs;
use std::path::{Path, PathBuf};

use gleaner::{Error, Result};
use sha2::{Digest as _, Sha256};

use super::session::{self, Session};

/// A session and the file it is kept in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub path: PathBuf,
    pub session: Session,
}

fn folder(home: &Path) -> PathBuf {
    home.join("agent").join("sessions")
}

/// The file for the session of the project at `url`.
pub fn path(home: &Path, url: &str) -> PathBuf {
    let url = plain(url);
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    // The readable part is for people. The hash distinguishes URLs that look alike.
    let name: String = host.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '-' }).take(60).collect();
    folder(home).join(format!("{name}-{}.json", &hex::encode(Sha256::digest(url))[..8]))
}

/// The URL as it is stored and compared: a trailing slash does not make it another project.
pub fn plain(url: &str) -> &str {
    url.trim().trim_end_matches('/')
}

/// The session for `url`. If no project is named, the one of the latest sign-in. None when there is no session there.
pub fn find(home: &Path, url: Option<&str>) -> Result<Option<Kept>> {
    adopt(home)?;
    let Some(url) = url else { return Ok(all(home)?.into_iter().next()) };
    let path = path(home, url);
    Ok(session::load(&path)?.filter(|session| session.url == plain(url)).map(|session| Kept { path, session }))
}

/// All sessions, the newest sign-in first. A file that cannot be read is logged and skipped.
pub fn all(home: &Path) -> Result<Vec<Kept>> {
    adopt(home)?;
    let Ok(files) = fs::read_dir(folder(home)) else { return Ok(Vec::new()) };
    let paths = files.filter_map(|file| Some(file.ok()?.path())).filter(|path| path.extension().is_some_and(|ext| ext == "json"));
    let read = |path: PathBuf| match session::load(&path) {
        Ok(session) => session.map(|session| Kept { path, session }),
        Err(error) => {
            tracing::warn!(%error, "a session cannot be read");
            None
        }
    };
    let mut all: Vec<Kept> = paths.filter_map(read).collect();
    all.sort_by(|a, b| (b.session.signed_in_at, &a.session.url).cmp(&(a.session.signed_in_at, &b.session.url)));
    Ok(all)
}

/// Moves the only session that earlier versions kept into the file of its project. A later sign-in there is kept.
fn adopt(home: &Path) -> Result<()> {
    let former = session::former_path(home);
    if !former.exists() {
        return Ok(());
    }
    let Some(session) = session::load(&former)? else { return Ok(()) };
    let path = path(home, &session.url);
    let failed = |error: std::io::Error| Error::Other(format!("move {} to {}: {error}", former.display(), path.display()));
    if path.exists() {
        return fs::remove_file(&former).or_else(gone).map_err(failed);
    }
    session::make_folder(&path)?;
    // If two processes do this at once, the second finds it done.
    fs::rename(&former, &path).or_else(gone).map_err(failed)
}

fn gone(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests;
