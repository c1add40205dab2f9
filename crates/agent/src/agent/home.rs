//! The private PostgreSQL of a home. Its socket is in another directory after each start. A symbolic link points to the current
//! one, so that connections find it again.

use std::path::{Path, PathBuf};

use gleaner::{Error, Result};
use gleaner_postgres::{Home, Phase, status};

/// The longest path of a unix socket, with room for the socket's file name.
const LONGEST: usize = 85;

/// The link is removed on drop.
#[derive(Debug)]
pub(super) struct Link {
    home: PathBuf,
    link: PathBuf,
}

impl Link {
    pub(super) fn new(home: &Path) -> Self {
        Self { home: home.to_owned(), link: home.join("agents").join(format!("{}.socket", std::process::id())) }
    }

    /// For people: the path of the link means nothing to them.
    pub(super) fn describe(&self) -> String {
        format!("the private PostgreSQL in {}", self.home.display())
    }

    /// Points the link to where PostgreSQL listens now. Returns the URL through the link, which stays the same.
    pub(super) async fn lead(&self) -> Result<String> {
        let url = url_of(&self.home).await?;
        let Some((before, directory)) = url.split_once("host=") else { return Ok(url) };
        let (folder, rest) = directory.split_at(directory.find('&').unwrap_or(directory.len()));
        if self.link.as_os_str().len() > LONGEST {
            // This URL works until PostgreSQL is restarted.
            return Ok(url.clone());
        }
        let folder = PathBuf::from(decoded(folder));
        if std::fs::read_link(&self.link).ok().as_ref() != Some(&folder) {
            let new = self.link.with_extension("new");
            let led = std::fs::create_dir_all(self.link.parent().unwrap_or(&self.home))
                .and_then(|()| {
                    std::fs::remove_file(&new)
                        .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
                })
                .and_then(|()| std::os::unix::fs::symlink(&folder, &new))
                .and_then(|()| std::fs::rename(&new, &self.link));
            led.map_err(|error| Error::Other(format!("write {}: {error}", self.link.display())))?;
        }
        Ok(format!("{before}host={}{rest}", encoded(&self.link)))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.link);
    }
}

/// Where the private PostgreSQL of a home listens.
async fn url_of(home: &Path) -> Result<String> {
    let away = |why: String| Error::Connect(why);
    let found = Home::at(home).map_err(|error| away(error.to_string()))?;
    let now = status(&found).await.map_err(|error| away(error.to_string()))?;
    match now.server {
        Some(server) if server.phase == Phase::Ready => Ok(server.url),
        Some(server) => Err(away(format!("the private one in {} (pid {}) is not ready yet", home.display(), server.pid))),
        None => Err(away(format!("nothing runs in {}; `gleaner up` starts it, or set DATABASE_URL or SUPABASE_URL", home.display()))),
    }
}

fn encoded(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let pair = after.get(..2).and_then(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        let (byte, left) = match pair {
            Some(pair) if *first == b'%' => (pair, &after[2..]),
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_an_address() {
        for path in ["/tmp/a b/100%/ä", "/run/gleaner-1", "/%41"] {
            assert_eq!(decoded(&encoded(Path::new(path))), path);
        }
    }
}
