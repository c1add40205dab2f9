//! Where an agent of a home listens: a note for other processes. Only its owner can read it, because the token in it allows
//! commands.

use std::fs::{OpenOptions, Permissions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rand::Rng as _;
use serde::{Deserialize, Serialize};

use super::client::Remote;
use crate::agent::Error;
use crate::config::Config;

/// How many names to try if the user chose none: agent, agent-2, …
const MOST: usize = 100;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Note {
    pub name: String,
    pub pid: u32,
    /// The address of the page.
    pub url: String,
    pub token: String,
    #[serde(skip)]
    path: PathBuf,
}

/// The directory of the notes of a home.
fn folder(home: &Path) -> PathBuf {
    home.join("agents")
}

impl Note {
    /// Writes that this process listens there, under the configured name, or under the next free one if the user chose none.
    pub(crate) async fn write(config: &Config, address: Option<SocketAddr>) -> Result<Self, Error> {
        let address = address.ok_or_else(|| Error::Other("the status page has no address".into()))?;
        let folder = folder(&config.home);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Note { path, source }
        };
        std::fs::create_dir_all(&folder).map_err(failed(&folder))?;
        std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).map_err(failed(&folder))?;
        let name = free_name(config, &folder).await?;
        let path = folder.join(format!("{name}.json"));
        let token = hex(rand::rng().random::<[u8; 24]>());
        let note = Self { name, pid: std::process::id(), url: format!("http://{address}/"), token, path };
        let text = serde_json::to_vec_pretty(&note).map_err(|error| Error::Other(error.to_string()))?;
        let new = folder.join(format!(".{}.new", note.pid));
        // Written in one step, so that a reader never sees half of it.
        let written =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new).and_then(|mut file| file.write_all(&text));
        written.and_then(|()| std::fs::rename(&new, &note.path)).map_err(failed(&note.path))?;
        Ok(note)
    }

    /// All notes of a home, by name. A note alone does not prove that its agent runs: see [`Remote::all`].
    pub fn all(home: &Path) -> Vec<Self> {
        let Ok(files) = std::fs::read_dir(folder(home)) else { return Vec::new() };
        let paths = files.filter_map(|file| Some(file.ok()?.path())).filter(|path| path.extension().is_some_and(|ext| ext == "json"));
        let mut notes: Vec<Self> = paths.filter_map(|path| Self::read(&path)).collect();
        notes.sort_by(|a, b| a.name.cmp(&b.name));
        notes
    }

    fn read(path: &Path) -> Option<Self> {
        let note: Self = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        Some(Self { path: path.to_owned(), ..note })
    }

    /// Removes the note, unless another process has written its own meanwhile.
    pub fn remove(&self) {
        if Self::read(&self.path).is_some_and(|note| note.pid == self.pid) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

async fn free_name(config: &Config, folder: &Path) -> Result<String, Error> {
    let wanted = &config.name.text;
    for number in 1..=MOST {
        let name = if number == 1 { wanted.clone() } else { format!("{wanted}-{number}") };
        let Some(note) = Note::read(&folder.join(format!("{name}.json"))) else { return Ok(name) };
        if Remote::new(note.clone()).status().await.is_err() {
            // The process that wrote it is gone.
            return Ok(name);
        }
        if config.name.chosen {
            return Err(Error::NameTaken { name, pid: note.pid, url: note.url });
        }
    }
    Err(Error::Other(format!("{MOST} agents named {wanted} run already; choose a name with --name")))
}

fn hex(bytes: [u8; 24]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
