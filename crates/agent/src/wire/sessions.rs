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
mod tests {
    use super::*;

    fn home() -> PathBuf {
        let home = std::env::temp_dir().join(format!("gleaner-sessions-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&home).expect("a folder");
        home
    }

    fn session(url: &str, signed_in_at: i64) -> Session {
        Session {
            url: url.into(),
            anon_key: "public".into(),
            access_token: "a".into(),
            refresh_token: "r".into(),
            expires_at: 0,
            user_id: "u".into(),
            email: "ada@example.com".into(),
            signed_in_at,
        }
    }

    #[test]
    fn each_project_has_a_session_of_its_own_and_the_last_sign_in_goes_first() {
        let home = home();
        let urls = ["http://127.0.0.1:54321", "https://a.supabase.co", "https://a.supabase.co/b"];
        for (n, url) in (1..).zip(urls) {
            session::save(&path(&home, url), &session(url, n)).expect("saved");
        }
        for url in urls {
            let found = find(&home, Some(&format!("{url}/"))).expect("readable").expect("kept");
            assert_eq!(found.session.url, url);
        }
        assert_eq!(find(&home, Some("https://b.supabase.co")).expect("readable"), None);
        let order: Vec<String> = all(&home).expect("readable").into_iter().map(|kept| kept.session.url).collect();
        assert_eq!(order, [urls[2], urls[1], urls[0]]);
        assert_eq!(find(&home, None).expect("readable").map(|kept| kept.session.url).as_deref(), Some(urls[2]));
        fs::remove_dir_all(home).expect("removed");
    }

    /// A user who signed in with an earlier version stays signed in.
    #[test]
    fn the_only_session_of_earlier_versions_becomes_that_of_its_project() {
        let home = home();
        let former = session::former_path(&home);
        session::save(&former, &session("https://a.supabase.co", 0)).expect("saved");
        let text = fs::read_to_string(&former).expect("written");
        let earlier: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let mut earlier = earlier.as_object().expect("an object").clone();
        earlier.remove("signed_in_at");
        fs::write(&former, serde_json::to_string(&earlier).expect("JSON")).expect("written");
        let found = find(&home, None).expect("readable").expect("kept");
        assert_eq!((found.path, found.session.email.as_str()), (path(&home, "https://a.supabase.co"), "ada@example.com"));
        assert!(!former.exists());

        // A project that was signed in to again since then has the newer session.
        session::save(&path(&home, "https://a.supabase.co"), &session("https://a.supabase.co", 7)).expect("saved");
        session::save(&former, &session("https://a.supabase.co", 0)).expect("saved");
        assert_eq!(find(&home, None).expect("readable").map(|kept| kept.session.signed_in_at), Some(7));
        assert!(!former.exists());
        fs::remove_dir_all(home).expect("removed");
    }
}
